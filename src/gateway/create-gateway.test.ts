import assert from "node:assert/strict";
import { test } from "vitest";
import { createProtocolClients } from "../../test/support/protocols.ts";
import { fakeBackend } from "../../test/support/server.ts";
import type { Interceptor } from "../pipeline/interceptor.ts";
import { createGateway } from "./create-gateway.ts";

test("serves every protocol, through the interceptors of plugins and then its own", async (context) => {
  const seen: string[] = [];
  const noting =
    (name: string): Interceptor =>
    (call, request, next) => {
      seen.push(`${name} ${call.protocol} ${request.operation}`);
      return next(call, request);
    };
  const gateway = await createGateway({
    backend: fakeBackend({}),
    port: 0,
    drainSeconds: 0,
    interceptors: [noting("own")],
    plugins: [{ interceptors: [noting("plugin")] }],
  });
  context.onTestFinished(async () => void (await gateway.close()));
  const clients = createProtocolClients(gateway.address.port);
  for (const { client, close } of Object.values(clients)) {
    await assert.rejects(client.dropTable({ id: ["t"] }));
    close();
  }
  const protocols = ["grpc", "grpc-web", "connect", "connect", "rest"];
  assert.deepEqual(
    seen,
    protocols.flatMap((protocol) => [`plugin ${protocol} dropTable`, `own ${protocol} dropTable`]),
  );
});
