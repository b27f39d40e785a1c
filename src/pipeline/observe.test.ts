import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pino } from "pino";
import { beginCall } from "../../test/support/caller.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { observe, observeStream } from "./observe.ts";

const { describeTable, queryTable } = LanceNamespaceService.method;

function logged() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { log, lines };
}

describe("the log of calls", () => {
  it("has what was decided about an upstream, in order", async () => {
    const { log, lines } = logged();
    const call = beginCall(describeTable, { log, id: ["n", "t"], database: "red" });
    await observe(call, async () => {
      call.note("cache_miss");
      // A copy with a signal of its own adds to the same.
      ({ ...call, signal: AbortSignal.timeout(1000) }).note("retry");
    });
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
    await observe(beginCall(describeTable, { log }), async () => {});
    assert.equal("upstream" in (lines[0] ?? {}), false);
  });

  it("has an answer that its reader left", async () => {
    const { log, lines } = logged();
    const answer = observeStream(beginCall(queryTable, { log }), async function* () {
      yield 1;
      yield 2;
    });
    for await (const _ of answer) break;
    assert.deepEqual(
      lines.map(({ msg, code }) => [msg, code]),
      [["call refused", "Cancelled"]],
    );
  });
});
