import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { test } from "vitest";
import { openBaseDirectory, table } from "../../../../test/fixtures/catalog/catalog.ts";
import { silent } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createCatalog } from "./catalog.ts";

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

for (const [how, later] of [
  ["as many versions", 2],
  ["more versions", 4],
] as const) {
  test(`a running gateway reads a restored catalog that has ${how}, and says so`, async (t) => {
    const { base, location, manifestTable, open } = await openBaseDirectory(t);
    const complaints: unknown[] = [];
    const log = Object.assign(Object.create(silent), { warn: (...line: unknown[]) => complaints.push(line) });
    const catalog = createCatalog(manifestTable(), log, { maintenance: false });
    const add = (to: typeof catalog, name: string) => to.mutate((draft) => draft.put(table(name)));
    await add(catalog, "first");
    const backup = `${base}-backup`;
    t.onTestFinished(() => rm(backup, { recursive: true }));
    await cp(location, backup, { recursive: true });
    for (const name of ["lost1", "lost2"]) await add(catalog, name);
    assert.deepEqual(complaints, []);
    await rm(location, { recursive: true });
    await cp(backup, location, { recursive: true });
    const other = open();
    for (let i = 0; i < later; i++) await add(other, `new${i}`);
    const tables = ["first", ...Array.from({ length: later }, (_, i) => `new${i}`)];
    assert.deepEqual((await catalog.read()).children("", "table", "", 10), tables);
    assert.equal(complaints.length, 1);
    await add(catalog, "own");
    assert.deepEqual((await other.read()).children("", "table", "", 10), [...tables, "own"]);
    assert.equal(complaints.length, 1);
  });
}
