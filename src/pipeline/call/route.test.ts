import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { OperationRequest } from "./interceptor.ts";
import { chooseDatabase } from "./route.ts";

const { batchCreateTableVersions } = LanceNamespaceService.method;

it("leaves the names of unknown databases out of the metrics, also for calls about several of them", async () => {
  const step = chooseDatabase(new Map(), [{ by: "namespace" }]);
  const call = beginCall(batchCreateTableVersions);
  const entries = [{ id: ["any text", "t"] }, { id: ["another", "t"] }];
  const message = create(batchCreateTableVersions.input, { entries });
  const request: OperationRequest = { kind: "unary", operation: "batchCreateTableVersions", message };
  await assert.rejects(
    step(call, request, () => assert.fail("the call goes on")),
    (error) => isLanceError(error, "InvalidInput"),
  );
  assert.equal(call.database, undefined);
});
