import assert from "node:assert/strict";
import { type TestContext, test } from "vitest";
import { openBaseDirectory } from "../../../../../test/fixtures/catalog/catalog.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { Catalog } from "../catalog.ts";
import { MANIFEST_NAME } from "../manifest/manifest-table.ts";
import { type Verdict, verdictsIn } from "../state/view.ts";

async function createWorld(t: TestContext) {
  const { base, engine, dataset, open } = await openBaseDirectory(t);
  const verdicts = async () => Object.fromEntries(verdictsIn((await readVersion(dataset)).manifest));
  return { base, engine, catalogs: [open(), open()] as const, verdicts };
}

const record = (catalog: Catalog, id: string, verdict: Verdict) =>
  catalog.mutate((draft) => draft.record(id, verdict));
const declare = (catalog: Catalog, objectId: string) =>
  catalog.mutate((draft) =>
    draft.put({ objectId, objectType: "table", location: `${objectId}.lance`, properties: {} }),
  );

test("counts the first verdict of a change, from any process", async (t) => {
  const { catalogs, verdicts } = await createWorld(t);
  const ids = Array.from({ length: 12 }, (_, i) => `change-${i}`);
  const answers = await Promise.all(
    ids.map((id, i) =>
      Promise.all([
        record(catalogs[i % 2] as Catalog, id, "committed"),
        record(catalogs[(i + 1) % 2] as Catalog, id, "refused"),
      ]),
    ),
  );
  const stands = await verdicts();
  for (const [i, [a, b]] of answers.entries()) {
    assert.equal(a, b, "both are told the same");
    assert.equal(stands[ids[i] as string], a);
  }
  for (const catalog of catalogs)
    assert.deepEqual(Object.fromEntries((await catalog.read()).verdicts), stands);
});

test("commits a verdict with the rows of its change, and none with a refused change", async (t) => {
  const { catalogs, verdicts } = await createWorld(t);
  const [catalog, other] = catalogs;
  await record(other, "b", "refused");
  const change = (id: string) =>
    catalog.mutate((draft) => {
      if (draft.record(id, "committed") === "refused") throw new Error("it was taken back");
      draft.put({ objectId: id, objectType: "table", location: `${id}.lance`, properties: {} });
    });
  await change("a");
  await assert.rejects(change("b"), /taken back/);
  assert.deepEqual(await verdicts(), { a: "committed", b: "refused" });
  assert.deepEqual([...(await other.read()).descendants("")], ["a"]);
});

test("keeps verdicts in the commits of other writers, and removes a forgotten one with the next commit", async (t) => {
  const { base, engine, catalogs, verdicts } = await createWorld(t);
  const [catalog, other] = catalogs;
  await record(catalog, "a", "committed");
  await record(catalog, "b", "refused");
  await declare(other, "t");
  const lease = await engine.acquire(`${base}/${MANIFEST_NAME}`);
  await lease.table.checkoutLatest();
  await lease.table.optimize(0);
  await lease.table.delete("object_id = 't'");
  lease.release();
  catalog.forget("a");
  catalog.forget("unknown");
  assert.deepEqual(await verdicts(), { a: "committed", b: "refused" });
  await declare(catalog, "u");
  assert.deepEqual(await verdicts(), { b: "refused" });
  assert.deepEqual([...(await other.read()).verdicts.keys()], ["b"]);
});
