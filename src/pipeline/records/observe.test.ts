import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { compose, type Next } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { observe } from "./observe.ts";

const { describeTable, queryTable } = LanceNamespaceService.method;

function logged() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { log, lines };
}

const observed = (last: Next) => serviceOf(compose([observe()], last));

describe("the log of calls", () => {
  it("has what was decided about an upstream, in order", async () => {
    const { log, lines } = logged();
    const call = beginCall(describeTable, { log, id: ["n", "t"], database: "red" });
    await observed(async (call) => {
      call.note("cache_miss");
      // A copy with a signal of its own adds to the same list.
      ({ ...call, signal: AbortSignal.timeout(1000) }).note("retry");
      return create(describeTable.output);
    }).unary(describeTable, create(describeTable.input), call);
    const { operation, protocol, database, id, upstream, msg } = lines[0] ?? {};
    assert.deepEqual(
      { operation, protocol, database, id, upstream, msg },
      {
        operation: "DescribeTable",
        protocol: "grpc",
        database: "red",
        id: "n$t",
        upstream: ["cache_miss", "retry"],
        msg: "call",
      },
    );
  });

  it("says nothing of an upstream where nothing was decided", async () => {
    const { log, lines } = logged();
    const service = observed(async () => create(describeTable.output));
    await service.unary(describeTable, create(describeTable.input), beginCall(describeTable, { log }));
    assert.equal("upstream" in (lines[0] ?? {}), false);
  });

  it("has an answer that its reader left", async () => {
    const { log, lines } = logged();
    async function* messages() {
      yield create(queryTable.output);
      yield create(queryTable.output);
    }
    const service = observed(async () => messages());
    const answer = service.download(queryTable, create(queryTable.input), beginCall(queryTable, { log }));
    for await (const _ of answer) break;
    assert.deepEqual(
      lines.map(({ msg, code }) => [msg, code]),
      [["call refused", "Cancelled"]],
    );
  });
});
