import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { startReceiver } from "../../test/fixtures/events.ts";
import { createProtocolClients } from "../../test/support/protocols.ts";
import { fakeBackend } from "../../test/support/server.ts";
import { webhookTo } from "../../test/support/webhook.ts";
import { CreateNamespaceResponseSchema } from "../gen/lance/namespace/v1/namespace_pb.ts";
import type { Interceptor } from "../pipeline/call/interceptor.ts";
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

test("sends events of changes to webhooks, and gives up their directory when it cannot listen", async (context) => {
  const { url, received } = await startReceiver(context);
  const backend = fakeBackend({ createNamespace: async () => create(CreateNamespaceResponseSchema) });
  const options = { backend, port: 0, drainSeconds: 0, ...(await webhookTo(url, context)) };
  const others = await webhookTo(url, context);
  for (const object of ["first", "second"]) {
    const gateway = await createGateway({ ...options, ...(object === "second" && others) });
    context.onTestFinished(async () => void (await gateway.close()));
    const { port } = gateway.address;
    if (object === "first")
      await assert.rejects(createGateway({ ...options, ...others, port }), /EADDRINUSE/);
    const { status } = await fetch(`http://127.0.0.1:${port}/v1/namespace/${object}/create`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    assert.equal(status, 200);
    await expect.poll(() => received.at(-1)?.event.subject).toBe(object);
    assert.match(String(received.at(-1)?.headers["webhook-signature"]), /^v1,/);
    await gateway.close();
  }
});
