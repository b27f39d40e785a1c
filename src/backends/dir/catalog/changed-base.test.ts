import assert from "node:assert/strict";
import { test } from "vitest";
import { silent } from "../test-support.ts";
import { createCatalog } from "./catalog.ts";
import { openBaseDirectory, table } from "./catalog-fixture.ts";

test("a commit that is prepared while a call reads the next version of another process is decided again", async (t) => {
  const { manifestTable, open } = await openBaseDirectory(t);
  const plain = manifestTable();
  let meanwhile: (() => Promise<unknown>) | undefined;
  const manifest: typeof plain = {
    ...plain,
    async prepare(...args) {
      const work = meanwhile;
      meanwhile = undefined;
      await work?.();
      return plain.prepare(...args);
    },
  };
  const complaints: unknown[] = [];
  const log = Object.assign(Object.create(silent), { error: (...line: unknown[]) => complaints.push(line) });
  const catalog = createCatalog(manifest, log, { maintenance: false });
  const other = open();
  // So many rows that the next version is not read as a whole.
  await catalog.mutate((draft) => {
    for (let i = 0; i < 5_000; i++) draft.put(table(`t${i}`, { by: "first" }));
  });
  meanwhile = async () => {
    await other.mutate((draft) => draft.put(table("t7", { by: "other" })));
    await catalog.read();
  };
  const seen = await catalog.mutate((draft) => {
    const before = draft.get("t7")?.properties["by"];
    draft.put(table("t7", { by: "last" }));
    return before;
  });
  assert.equal(seen, "other");
  assert.deepEqual((await other.read()).get("t7")?.properties, { by: "last" });
  assert.deepEqual(complaints, []);
});
