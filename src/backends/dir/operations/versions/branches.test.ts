import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { NativeBranches, NativeTable } from "../../engine/native.ts";
import { describeVersion } from "../../format/versions/version-files.ts";
import { openDirectory } from "../../open-directory.ts";
import { rows } from "../../rows-fixture.ts";
import { failsWith, openClient, silent, temporaryDirectory } from "../../test-support.ts";
import { datasetOf, requireTable } from "../tables/lookup.ts";
import { createBranchOperations } from "./branches.ts";

/** Returns an object of the engine, one of whose methods is replaced. */
function withMethod<T extends object, K extends keyof T>(object: T, name: K, method: T[K]): T {
  return new Proxy(object, {
    get(target, key) {
      const value = key === name ? method : target[key as keyof T];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("a branch does not begin on a version that is pruned at that moment", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  await client.upload("insertIntoTable", "t", {}, rows([1]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const dataset = datasetOf(context, await requireTable(context, ["t"]));
  const prunedMeanwhile = (branches: NativeBranches) =>
    withMethod(branches, "create", async (...args) => {
      const made = await branches.create(...args);
      await context.store.delete((await describeVersion(dataset, 1n)).key);
      return made;
    });
  const engine = {
    ...context.engine,
    async acquire(...args: Parameters<typeof context.engine.acquire>) {
      const lease = await context.engine.acquire(...args);
      const branches = async () => prunedMeanwhile(await lease.table.branches());
      return { ...lease, table: withMethod<NativeTable, "branches">(lease.table, "branches", branches) };
    },
  };
  const { createTableBranch } = createBranchOperations({ ...context, engine });
  const method = LanceNamespaceService.method.createTableBranch;
  const request = create(method.input, { name: "b", fromVersion: 1n });
  const call = beginCall(method, { id: ["t"] });
  await assert.rejects(createTableBranch(request, call), failsWith("TableVersionNotFound"));
  assert.deepEqual((await client.call("listTableBranches", "t")).branches, {});
});
