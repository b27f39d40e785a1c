import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { withParts } from "../../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { BatchCommitTablesRequestSchema } from "../../../../gen/lance/namespace/v1/transaction_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { createManagedVersionOperations } from "./managed-versions.ts";

test("lets other calls run while a batch of many operations is planned", async (t) => {
  const root = await temporaryDirectory(t);
  await (await openClient(t, root)).call("createNamespace", "n");
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  let [turned, plans] = [false, 0];
  const plannedAtTurn: number[] = [];
  const layout = {
    ...context.layout,
    async checkNoEscape(location: string) {
      if (++plans === 1) {
        setImmediate(() => {
          turned = true;
        });
        // Longer than any stretch of work without a pause.
        for (const start = performance.now(); performance.now() - start < 20; );
      }
      if (turned) plannedAtTurn.push(plans);
      return context.layout.checkNoEscape(location);
    },
  };
  const { batchCommitTables } = createManagedVersionOperations(withParts(context, { layout }));
  const operations = Array.from({ length: 10 }, (_, i) => ({
    operation: { case: "declareTable" as const, value: { id: ["n", `t${i}`] } },
  }));
  const request = create(BatchCommitTablesRequestSchema, { operations });
  const { results } = await batchCommitTables(
    request,
    beginCall(LanceNamespaceService.method.batchCommitTables, { id: [] }),
  );
  assert.equal(results.length, 10);
  assert.equal(plannedAtTurn[0], 2, "the second operation is planned in a later turn");
});
