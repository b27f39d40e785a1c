import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type Message } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { test } from "vitest";
import { startServer } from "../../test/fixtures/server/server.ts";
import { callUnary, codecs } from "../../test/fixtures/wires/grpc.ts";
import { Health, HealthCheckRequestSchema } from "../gen/grpc/health/v1/health_pb.ts";

const LANCE = "lance.namespace.v1.LanceNamespaceService";

test("Check answers for the server and its service", async () => {
  await using server = await startServer();
  const client = new Client(server.address, credentials.createInsecure());
  const check = async (service: string) => {
    const { error, response } = await callUnary(client, { service }, new Metadata(), {}, Health.method.check);
    return error?.code ?? response?.["status"];
  };
  assert.equal(await check(""), 1);
  assert.equal(await check(LANCE), 1);
  assert.equal(await check("other"), status.NOT_FOUND);
  server.readiness.set(false);
  assert.equal(await check(""), 2);
  client.close();
});

test("Watch answers at once and at each change, and ends with the server", async () => {
  await using server = await startServer();
  const client = new Client(server.address, credentials.createInsecure());
  const watch = (service: string) => {
    const seen: unknown[] = [];
    const request = create(HealthCheckRequestSchema, { service }) as Message;
    const call = client.makeServerStreamRequest(...codecs(Health.method.watch), request, new Metadata(), {});
    call.on("data", (message) => seen.push(message.status)).on("error", () => {});
    return { seen, call, ended: new Promise((resolve) => call.on("status", resolve)) };
  };
  const known = watch(LANCE);
  const unknown = watch("other");
  const cancelled = watch("");
  const sees = async ({ seen }: { readonly seen: unknown[] }, count: number) => {
    while (seen.length < count) await sleep(5);
  };
  await Promise.all([sees(known, 1), sees(unknown, 1), sees(cancelled, 1)]);
  cancelled.call.cancel();
  await cancelled.ended;
  server.readiness.set(true);
  server.readiness.set(false);
  await sees(known, 2);
  server.readiness.set(true);
  await sees(known, 3);
  assert.equal(await server.close({ graceMs: 5000 }), true);
  assert.deepEqual(known.seen, [1, 2, 1, 2]);
  assert.deepEqual(unknown.seen, [3]);
  assert.deepEqual(cancelled.seen, [1]);
  assert.equal(((await known.ended) as { code: number }).code, 0);
  client.close();
});
