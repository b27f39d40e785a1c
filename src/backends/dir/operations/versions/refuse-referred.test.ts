import assert from "node:assert/strict";
import { test } from "vitest";
import { idsOf, rows } from "../../rows-fixture.ts";
import { failsWith, openClient, temporaryDirectory } from "../../test-support.ts";

test("versions that tags and branches name are not deleted, and the refusal names the tag or branch", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  for (const id of [2, 3, 4]) await client.upload("insertIntoTable", "t", {}, rows([id]));
  await client.call("createTableTag", "t", { tag: "release", version: 2n });
  await client.call("createTableBranch", "t", { name: "work", fromVersion: 3n });
  await client.upload("insertIntoTable", "t", { branch: "work" }, rows([5]));
  await client.call("createTableTag", "t", { tag: "tried", version: 4n, branch: "work" });

  const attempts = (start: bigint, end: bigint, branch?: string) => {
    const request = { ranges: [{ startVersion: start, endVersion: end }], ...(branch && { branch }) };
    const operation = { case: "deleteTableVersions", value: { id: ["t"], ...request } };
    return [
      () => client.call("batchDeleteTableVersions", "t", request),
      () => client.call("batchCommitTables", "", { operations: [{ operation: operation as never }] }),
    ];
  };
  for (const [start, end, branch, name] of [
    [2n, 3n, undefined, /release/],
    [3n, -1n, undefined, /work/],
    [0n, -1n, undefined, /release/],
    [4n, -1n, "work", /tried/],
  ] as const) {
    for (const attempt of attempts(start, end, branch)) {
      await assert.rejects(attempt(), failsWith("InvalidInput"));
      await assert.rejects(attempt(), name);
    }
  }
  const { versions } = await client.call("listTableVersions", "t");
  assert.deepEqual(
    versions.map(({ version }) => version),
    [1n, 2n, 3n, 4n],
  );
  assert.deepEqual(idsOf(await client.query("t", { branch: "work" })).sort(), [1, 2, 3, 5]);

  const [deletion] = attempts(4n, -1n);
  await deletion?.();
  await client.call("deleteTableTag", "t", { tag: "release" });
  const [tagged] = attempts(2n, 3n);
  await tagged?.();
  assert.deepEqual(idsOf(await client.query("t")).sort(), [1, 2, 3]);
});
