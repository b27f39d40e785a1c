import assert from "node:assert/strict";
import { test } from "vitest";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { failsWith, openClient, silent, temporaryDirectory } from "../../test-support.ts";
import { openGuarded } from "./guarded.ts";

for (const next of ["nothing", "another table"]) {
  test(`work on a table that was dropped, and has ${next} in its place, does not report damage`, async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
    t.onTestFinished(close);
    await client.upload("createTable", "t", {}, personStream(people(3)));
    const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"] });
    const data = await openGuarded(context, call, {});
    await client.call("dropTable", "t");
    if (next !== "nothing") await client.call("declareTable", "t");
    await assert.rejects(
      data.wait(() => data.table.checkoutLatest()),
      failsWith("TableNotFound"),
    );
    data.release();
  });
}
