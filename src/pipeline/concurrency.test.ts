import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../test/support/caller.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../namespace/errors.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import { createService } from "./create-service.ts";

const { describeTable, queryTable } = LanceNamespaceService.method;

const isThrottled = (error: unknown) =>
  isLanceError(error, "Throttling") && error.headers["retry-after"] === "1";

describe("limitConcurrency", () => {
  const held = Promise.withResolvers<void>();
  const backend: Backend = {
    name: "held",
    operations: {
      async describeTable({ identifier }) {
        if (identifier === "held") await held.promise;
        return create(describeTable.output);
      },
      async *queryTable() {
        yield create(queryTable.output);
        yield create(queryTable.output);
      },
    },
    ready: async () => true,
    close: async () => {},
  };
  const limits = { maxUploadBytes: 1, maxConcurrentCalls: 1 };
  const limited = createService({ databases: new Map([[undefined, { backend, limits }]]) });
  const describeOnce = (identifier = "") =>
    limited.unary(describeTable, create(describeTable.input, { identifier }), beginCall(describeTable));
  const download = () => limited.download(queryTable, create(queryTable.input), beginCall(queryTable));

  it("refuses one call more, and takes it when another has ended", async () => {
    const first = describeOnce("held");
    await assert.rejects(describeOnce(), isThrottled);
    await assert.rejects(async () => {
      for await (const _ of download());
    }, isThrottled);
    held.resolve();
    await first;
    await describeOnce();
  });

  it("counts an answer until its reader is through with it or leaves", async () => {
    for await (const _ of download()) {
      await assert.rejects(describeOnce(), isThrottled);
      break;
    }
    await describeOnce();
  });
});
