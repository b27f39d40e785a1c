import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { failsWith, openClient, silent, temporaryDirectory } from "../../test-support.ts";
import { createDropOperations } from "./drop.ts";

/** Drops a table of the root, and lets another process act before the look at the directory. */
async function dropAfter(t: TestContext, root: string, before: () => Promise<unknown>): Promise<unknown> {
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const layout = {
    ...context.layout,
    async isUnlistedTable(location: string) {
      await before();
      return context.layout.isUnlistedTable(location);
    },
  };
  const method = LanceNamespaceService.method.dropTable;
  const call = beginCall(method, { id: ["t"] });
  return createDropOperations({ ...context, layout }).dropTable(create(method.input), call);
}

test("a table that is declared during a lookup is not taken for one without a row", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const dropped = dropAfter(t, root, () => client.call("declareTable", "t", { properties: { by: "other" } }));
  await assert.rejects(dropped, failsWith("TableNotFound"));
  assert.deepEqual((await client.call("describeTable", "t")).properties, { by: "other" });
  await client.call("dropTable", "t");
  assert.deepEqual((await client.call("listTables", "")).tables, []);
});
