import assert from "node:assert/strict";
import { test } from "vitest";
import { openBaseDirectory, table } from "../../../../test/fixtures/catalog/catalog.ts";

test("a catalog that is closed during a look keeps its files open until the look ends", async (t) => {
  const world = await openBaseDirectory(t);
  const [writer, real] = [world.open(), world.manifestTable()];
  t.onTestFinished(writer.close);
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  let isOpen = true;
  const reader = world.open({
    ...real,
    async changes(from, to) {
      begun.resolve();
      await go.promise;
      assert.ok(isOpen, "the files are closed");
      return real.changes(from, to);
    },
    async close() {
      isOpen = false;
      await real.close();
    },
  });
  await writer.mutate((draft) => draft.put(table("first")));
  await reader.read();
  await writer.mutate((draft) => draft.put(table("second")));
  const read = reader.read();
  await begun.promise;
  const closed = reader.close();
  await new Promise(setImmediate);
  go.resolve();
  assert.ok((await read).get("second"));
  await closed;
  await writer.mutate((draft) => draft.put(table("third")));
  await assert.rejects(reader.read(), /the catalog is closed/);
});
