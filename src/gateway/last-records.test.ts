import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { it } from "vitest";
import { sendHttp } from "../../test/support/http.ts";
import { fakeBackend, startServer } from "../../test/support/server.ts";
import { DescribeTableResponseSchema } from "../gen/lance/namespace/v1/table_pb.ts";

it("writes the line of a call that a drain has given up, if the call ends soon, before it closes the audit log and the way of events", async () => {
  const order: string[] = [];
  const [begun, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const backend = fakeBackend({
    async describeTable() {
      begun.resolve();
      await closed.promise;
      for (let turn = 0; turn < 20; turn++) await nextTurn();
      return create(DescribeTableResponseSchema);
    },
  });
  const trail = {
    requireWritable() {},
    async write(line: string) {
      order.push(JSON.parse(line).operation);
    },
    async close() {
      order.push("log closed");
    },
  };
  const dispatcher = { close: async () => void order.push("events closed") };
  const { port, close } = await startServer(
    { ...backend, close: async () => closed.resolve() },
    {},
    { trail, dispatcher },
  );
  const lost = assert.rejects(sendHttp(port, { path: "/v1/table/t/describe", body: "{}" }));
  await begun.promise;
  await close();
  await lost;
  assert.deepEqual(order, ["DescribeTable", "events closed", "log closed"]);
});
