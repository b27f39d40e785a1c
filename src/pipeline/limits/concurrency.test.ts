import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { openCells } from "../../runtime/threads/keyed-cells.ts";
import { compose, type Next } from "../call/interceptor.ts";
import { createService, serviceOf } from "../create-service.ts";
import { limitCallers } from "./concurrency.ts";
import { QUOTA_SHAPE } from "./quotas.ts";

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

describe("limitCallers", () => {
  const people = ["ann", "bob"].map((name): Principal => {
    return { by: "api-key", name, credentialId: name, role: "owner", groups: [], claims: {} };
  });
  const [ann, bob] = people as [Principal, Principal];

  it("counts the calls of each caller until they end, and of callers without a name by address", async () => {
    const held = Promise.withResolvers<void>();
    const service = serviceOf(
      compose([limitCallers(1, "calls", openCells(QUOTA_SHAPE))], async () => {
        await held.promise;
        return create(describeTable.output);
      }),
    );
    const ask = (facts: Partial<Call>) =>
      service.unary(describeTable, create(describeTable.input), beginCall(describeTable, facts));
    const running = [{ principal: ann }, { principal: bob }, { peer: "192.0.2.1" }].map(ask);
    await assert.rejects(ask({ principal: ann, peer: "192.0.2.9" }), isThrottled);
    await assert.rejects(ask({ peer: "192.0.2.1" }), isThrottled);
    held.resolve();
    await Promise.all(running);
    await ask({ principal: ann });
  });

  it("counts downloads alone where it bounds them", async () => {
    const last: Next = async ({ method }) => {
      if (method !== queryTable) return create(method.output) as never;
      return (async function* () {
        yield create(queryTable.output);
        yield create(queryTable.output);
      })() as never;
    };
    const service = serviceOf(compose([limitCallers(1, "downloads", openCells(QUOTA_SHAPE))], last));
    const download = (principal: Principal) =>
      service.download(queryTable, create(queryTable.input), beginCall(queryTable, { principal }));
    const read = async (principal: Principal) => {
      for await (const _ of download(principal));
    };
    for await (const _ of download(ann)) {
      await assert.rejects(read(ann), isThrottled);
      await read(bob);
      await service.unary(
        describeTable,
        create(describeTable.input),
        beginCall(describeTable, { principal: ann }),
      );
      break;
    }
    await read(ann);
  });
});
