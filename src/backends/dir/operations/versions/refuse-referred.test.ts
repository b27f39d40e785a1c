import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { openDirectory } from "../../open-directory.ts";
import { createBranchOperations } from "./branches.ts";
import { createManagedVersionOperations } from "./managed-versions.ts";
import { createTagOperations } from "./tags.ts";

const method = LanceNamespaceService.method;

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

for (const by of ["batchDeleteTableVersions", "batchCommitTables"] as const) {
  test(`tags and branches that are made while ${by} deletes their version do not name a version that is gone`, async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    await client.upload("createTable", "t", {}, rows([1]));
    for (const id of [2, 3, 4]) await client.upload("insertIntoTable", "t", {}, rows([id]));
    await client.call("createTableTag", "t", { tag: "moved", version: 4n });
    const { context, close } = await openDirectory({ root, log: silent });
    t.onTestFinished(close);
    const [tags, branches] = [createTagOperations(context), createBranchOperations(context)];
    const call = (name: keyof typeof method) => beginCall(method[name], { id: ["t"] });
    const named = { tag: "new", version: 2n };
    const attempts = [
      () => tags.createTableTag(create(method.createTableTag.input, named), call("createTableTag")),
      () =>
        tags.updateTableTag(
          create(method.updateTableTag.input, { ...named, tag: "moved" }),
          call("updateTableTag"),
        ),
      () =>
        branches.createTableBranch(
          create(method.createTableBranch.input, { name: "new", fromVersion: 2n }),
          call("createTableBranch"),
        ),
    ];
    let made: Promise<unknown> | undefined;
    const store: ObjectStore = {
      ...context.store,
      async delete(key) {
        if (key.includes("/_versions/") && key.endsWith(".manifest")) {
          made ??= Promise.allSettled(attempts.map((attempt) => attempt()));
          // Without a lock, all of them end now.
          await Promise.race([made, sleep(300)]);
        }
        return context.store.delete(key);
      },
    };
    const operations = createManagedVersionOperations({ ...context, store });
    const ranges = [{ startVersion: 2n, endVersion: 3n }];
    if (by === "batchDeleteTableVersions")
      await operations[by](create(method[by].input, { ranges }), call(by));
    else
      await operations[by](
        create(method[by].input, {
          operations: [{ operation: { case: "deleteTableVersions", value: { id: ["t"], ranges } } }],
        }),
        beginCall(method[by], { id: [] }),
      );
    await made;
    const { versions } = await client.call("listTableVersions", "t");
    assert.deepEqual(
      versions.map(({ version }) => version),
      [1n, 3n, 4n],
    );
    const left = Object.entries((await client.call("listTableTags", "t")).tags);
    assert.deepEqual(
      left.map(([name, { version }]) => [name, version]),
      [["moved", 4n]],
    );
    assert.deepEqual((await client.call("listTableBranches", "t")).branches, {});
  });
}
