import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import { create, type Message } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { type FixtureOptions, startServer } from "../../test/fixtures/server/server.ts";
import { callUnary, codecs, fakeService, METHODS } from "../../test/fixtures/wires/grpc.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { CreateTableRequestSchema, CreateTableResponseSchema } from "../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import {
  DeclareTableResponseSchema,
  DescribeTableResponseSchema,
} from "../gen/lance/namespace/v1/table_pb.ts";
import type { Service } from "../namespace/service.ts";
import type { LoopPace } from "../runtime/loop-pace.ts";
import { createTranscoder } from "../transcode/transcoder.ts";

const PIECE = Buffer.alloc(50_000);

/** Returns a pace that starts a number of tasks and then holds all others until they are let go. */
function holdingPace(free: number) {
  const waiting: { readonly go: () => void; readonly exchange: { readonly done: boolean } | undefined }[] =
    [];
  let holds = true;
  let left = free;
  const pace: LoopPace = {
    enter: () => !holds || left-- > 0,
    turn: (exchange) => new Promise<void>((go) => void waiting.push({ go, exchange })),
    noteConnection() {},
  };
  return {
    pace,
    waiting,
    letGo() {
      holds = false;
      for (const { go } of waiting.splice(0)) go();
    },
  };
}

/** Starts a server with a client of each protocol. */
async function start(service: Partial<Service>, pace: LoopPace, more: FixtureOptions = {}) {
  const transcoders = [createTranscoder([LanceNamespaceService])];
  const server = await startServer({
    service: fakeService(service),
    pace,
    transcoders,
    plugins: [],
    ...more,
  });
  const baseUrl = server.url;
  const grpc = new Client(server.address, credentials.createInsecure());
  const connect = createClient(
    LanceNamespaceService,
    createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true }),
  );
  const web = createClient(LanceNamespaceService, createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }));
  return {
    ...server,
    grpc,
    connect,
    web,
    rest: (path: string, init: RequestInit) =>
      fetch(`${baseUrl}/v1/table/t/${path}`, { method: "POST", ...init }),
    async [Symbol.asyncDispose]() {
      grpc.close();
      await server.close({ graceMs: 0 });
    },
  };
}

const JSON_BODY = { body: "{}", headers: { "content-type": "application/json" } };

test("calls on every wire wait for their turn of the event loop, and probes do not", async () => {
  const { pace, waiting, letGo } = holdingPace(0);
  let calls = 0;
  const unary = async () => {
    calls += 1;
    return create(DescribeTableResponseSchema, { table: "t" });
  };
  await using server = await start({ unary }, pace);
  const answers = [
    server
      .rest("describe", JSON_BODY)
      .then(async (response) => ((await response.json()) as { table: string }).table),
    callUnary(server.grpc, {}, new Metadata()).then(({ response }) => response?.["table"]),
    server.connect.describeTable({}).then(({ table }) => table),
    server.web.describeTable({}).then(({ table }) => table),
  ];
  await expect.poll(() => waiting.length).toBe(4);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  const health = await callUnary(server.grpc, {}, new Metadata(), {}, Health.method.check);
  assert.equal(health.response?.["status"], 1);
  assert.equal(calls, 0);
  letGo();
  assert.deepEqual(await Promise.all(answers), ["t", "t", "t", "t"]);
});

test("requests of each kind that wait at their arrival over HTTP/2 are answered in their turn", async () => {
  const { pace, waiting, letGo } = holdingPace(0);
  const metrics = { read: async () => ({ contentType: "text/plain", content: Buffer.from("figures") }) };
  await using server = await start({}, pace, { metrics });
  const session = connectHttp2(server.url);
  const rest = { ":method": "POST", ":path": "/v1/table/t/describe", "content-type": "application/json" };
  const method = `/${LanceNamespaceService.typeName}/DescribeTable`;
  const requests: readonly (readonly [OutgoingHttpHeaders, string | undefined, RegExp])[] = [
    [{ ":path": "/metrics" }, undefined, /^200 figures$/],
    [{ ":path": "/nothing" }, undefined, /^404 .*RouteNotFound/],
    [rest, "{}", /^200 .*"table":"t"/],
    [rest, "", /^200 .*"table":"t"/],
    [{ ...rest, ":path": method }, "{}", /^200 .*"table":"t"/],
    [{ ...rest, ":path": method, "content-type": "application/proto" }, "", /^200 /],
    [
      { ...rest, ":path": method, "content-type": "application/grpc-web+proto" },
      "\0\0\0\0\0",
      /grpc-status: 0/,
    ],
    [{ ...rest, ":path": method, "content-type": "application/grpc" }, "\0\0\0\0\0", /^200 /],
    [{ ...rest, ":path": "/a.B/C", "content-type": "application/grpc" }, "\0\0\0\0\0", /^200 $/],
    [{ ...rest, ":path": method, "content-type": "application/grpc" }, "", /^200 $/],
  ];
  const answers = requests.map(async ([headers, body]) => {
    const stream = session.request(headers, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }];
    return `${answer[":status"]} ${await text(stream)}`;
  });
  // The last one is native gRPC without a message, which is what has its turn there.
  await expect.poll(() => waiting.length).toBe(requests.length - 1);
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  letGo();
  for (const [index, answer] of (await Promise.all(answers)).entries())
    assert.match(answer, requests[index]?.[2] as RegExp);
  session.destroy();
});

test("a call whose client leaves while it waits for its turn never starts", async () => {
  const { pace, waiting, letGo } = holdingPace(0);
  let calls = 0;
  const unary = async () => {
    calls += 1;
    return create(DescribeTableResponseSchema, {});
  };
  await using server = await start({ unary }, pace);
  const leaving = new AbortController();
  const { signal } = leaving;
  const answers = Promise.allSettled([
    server.rest("describe", { ...JSON_BODY, signal }),
    server.connect.describeTable({}, { signal }),
    server.web.describeTable({}, { signal }),
    cancelled(server.grpc, signal),
  ]);
  await expect.poll(() => waiting.length).toBe(4);
  leaving.abort();
  await answers;
  await expect.poll(() => waiting.filter(({ exchange }) => exchange?.done).length).toBe(4);
  letGo();
  await server.rest("describe", JSON_BODY);
  assert.equal(calls, 1);
});

test("a large message waits for a turn of its own before it is decoded", async () => {
  const properties = { text: "x".repeat(10_000) };
  for (const protocol of ["rest", "connect", "web"] as const) {
    const { pace, waiting, letGo } = holdingPace(1);
    let calls = 0;
    const unary = async () => {
      calls += 1;
      return create(DeclareTableResponseSchema, { location: "here" });
    };
    await using server = await start({ unary }, pace);
    const send = {
      rest: async () => {
        const body = JSON.stringify({ properties });
        const response = await server.rest("declare", { ...JSON_BODY, body });
        return (await response.json()) as { location: string };
      },
      connect: () => server.connect.declareTable({ id: ["t"], properties }),
      web: () => server.web.declareTable({ id: ["t"], properties }),
    }[protocol];
    const answer = send();
    await expect.poll(() => waiting.length).toBe(1);
    assert.equal(calls, 0, protocol);
    letGo();
    assert.equal((await answer).location, "here", protocol);
  }
});

test("the body of an upload goes on in its turns", async () => {
  for (const protocol of ["rest", "grpc", "web"] as const) {
    const { pace, waiting, letGo } = holdingPace(1);
    let received = 0;
    const upload = async (_method: unknown, _request: unknown, data: AsyncIterable<Uint8Array>) => {
      for await (const piece of data) received += piece.byteLength;
      return create(CreateTableResponseSchema, {});
    };
    await using server = await start({ upload }, pace);
    const send = {
      rest: () => server.rest("create", { body: PIECE }),
      grpc: () => createOverGrpc(server.grpc, [new Uint8Array(0), PIECE]),
      web: () => createOverConnect(server.url, PIECE),
    }[protocol];
    const answer = send();
    await expect.poll(() => waiting.length).toBeGreaterThan(0);
    assert.equal(received, 0, protocol);
    letGo();
    await answer;
    assert.equal(received, PIECE.length, protocol);
  }
});

/** Makes a call and cancels it when the signal aborts. */
function cancelled(client: Client, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const request = create(METHODS.describeTable.input, {}) as Message;
    const call = client.makeUnaryRequest(...codecs(METHODS.describeTable), request, new Metadata(), {}, () =>
      resolve(),
    );
    signal.addEventListener("abort", () => call.cancel());
  });
}

function createOverGrpc(client: Client, pieces: readonly Uint8Array[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = client.makeClientStreamRequest(
      ...codecs(METHODS.createTable),
      new Metadata(),
      {},
      (error) => (error ? reject(error) : resolve()),
    );
    for (const data of pieces)
      call.write(create(CreateTableRequestSchema, { id: ["t"], data: { data } }) as Message);
    call.end();
  });
}

async function createOverConnect(baseUrl: string, data: Uint8Array): Promise<void> {
  const transport = createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true });
  async function* messages() {
    yield { id: ["t"], data: { data } };
  }
  await createClient(LanceNamespaceService, transport).createTable(messages());
}
