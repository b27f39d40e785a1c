import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { startConnect } from "../../../test/fixtures/wires/connect.ts";
import { fakeService } from "../../../test/fixtures/wires/grpc.ts";
import { createSlowList, type SlowList } from "../../../test/support/slow-list.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import { CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import {
  DescribeTableResponseSchema,
  ListTablesResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { ListTableTagsResponseSchema } from "../../gen/lance/namespace/v1/tag_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";

const DESCRIBE = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";

test("calls of every kind arrive by Connect and gRPC-Web over HTTP/1.1 and HTTP/2", async () => {
  let seen: Call | undefined;
  await using server = await startConnect({
    async unary(_method, request, call) {
      seen = call;
      call.responseHeaders["x-answer"] = "yes";
      return create(DescribeTableResponseSchema, {
        table: (request as unknown as { id: string[] }).id.join("/"),
      });
    },
    async upload(_method, request, data) {
      let bytes = 0;
      for await (const piece of data) bytes += piece.length;
      const location = `${(request as unknown as { id: string[] }).id.join("/")} ${bytes}`;
      return create(CreateTableResponseSchema, { location });
    },
    async *download() {
      for (const text of ["a", "b"])
        yield create(QueryTableResponseSchema, { data: { data: Buffer.from(text) } });
    },
  });
  for (const { protocol, client } of server.clients) {
    const received = new Headers();
    const options = {
      headers: { "x-request-id": "r1" },
      timeoutMs: 5000,
      onHeader(headers: Headers) {
        for (const [name, value] of headers) received.set(name, value);
      },
    };
    assert.equal((await client.describeTable({ id: ["a", "b"] }, options)).table, "a/b");
    assert.equal(seen?.protocol, protocol);
    assert.equal(seen?.requestId, "r1");
    assert.ok(seen?.deadline !== undefined && seen.deadline > Date.now());
    assert.equal(received.get("x-request-id"), "r1");
    assert.equal(received.get("x-answer"), "yes");
    async function* pieces() {
      yield { id: ["t"], data: { data: Buffer.from("abc") } };
      yield { data: { data: Buffer.from("de") } };
    }
    assert.equal((await client.createTable(pieces())).location, "t 5");
    const bodies: string[] = [];
    for await (const { data } of client.queryTable({})) bodies.push(Buffer.from(data?.data ?? []).toString());
    assert.deepEqual(bodies, ["a", "b"]);
  }
});

test("long lists and maps arrive whole by Connect and gRPC-Web", async () => {
  const tables = Array.from({ length: 2_000 }, (_, i) => `é${i}`);
  const tags = Object.fromEntries(tables.map((name, i) => [name, { version: BigInt(i) }]));
  const listed = create(ListTablesResponseSchema, { tables, pageToken: "p" });
  const tagged = create(ListTableTagsResponseSchema, { tags });
  await using server = await startConnect({
    ...fakeService(),
    unary: async ({ name }) => (name === "ListTables" ? listed : tagged) as never,
  });
  for (const { client } of server.clients) {
    assert.deepEqual(await client.listTables({}), listed);
    assert.deepEqual(await client.listTableTags({}), tagged);
  }
  const path = `${server.http1}/lance.namespace.v1.LanceNamespaceService/ListTables`;
  for (const encoding of ["identity", "br, gzip"]) {
    const headers = { "content-type": "application/json", "accept-encoding": encoding };
    const answer = await fetch(path, { method: "POST", headers, body: "{}" });
    const [packed, length] = ["content-encoding", "content-length"].map((name) => answer.headers.get(name));
    const text = await answer.text();
    assert.deepEqual(JSON.parse(text), { tables, pageToken: "p" });
    const expected = encoding === "identity" ? [null, String(Buffer.byteLength(text))] : ["gzip", null];
    assert.deepEqual([packed, length], expected);
  }
});

test("a long list is encoded no further once its client has left", async () => {
  let call: Call | undefined;
  const lists: SlowList[] = [];
  await using server = await startConnect({
    ...fakeService(),
    async unary(_method, _request, given) {
      call = given;
      return create(ListTablesResponseSchema, { tables: lists.at(-1)?.list ?? [] }) as never;
    },
  });
  for (const { client } of server.clients) {
    call = undefined;
    const slow = createSlowList(() => call?.signal.aborted === true);
    lists.push(slow);
    const leaving = new AbortController();
    const answer = client.listTables({}, { signal: leaving.signal });
    await slow.begun;
    leaving.abort();
    await assert.rejects(answer);
    const { signal } = call as unknown as Call;
    if (!signal.aborted) await once(signal, "abort");
    const { steps } = slow;
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    assert.equal(slow.steps, steps);
  }
});

test("errors keep their code, their headers and the error response", async () => {
  await using server = await startConnect({
    ...fakeService(),
    async unary() {
      throw new LanceError("TableNotFound", "no table", { headers: { "retry-after": "7" } });
    },
    async *download() {
      yield create(QueryTableResponseSchema, {});
      throw new TypeError("secret");
    },
  });
  for (const { client } of server.clients) {
    await assert.rejects(client.describeTable({}, { headers: { "x-request-id": "r2" } }), (thrown) => {
      const error = ConnectError.from(thrown);
      const [detail] = error.findDetails(ErrorResponseSchema);
      assert.equal(error.code, Code.NotFound);
      assert.equal(error.rawMessage, "no table");
      assert.equal(detail?.code, 4);
      assert.equal(detail?.instance, "r2");
      assert.equal(error.metadata.get("x-request-id"), "r2");
      assert.equal(error.metadata.get("retry-after"), "7");
      return true;
    });
    await assert.rejects(
      async () => {
        for await (const _ of client.queryTable({}));
      },
      (thrown) => ConnectError.from(thrown).code === Code.Internal && !String(thrown).includes("secret"),
    );
  }
  assert.ok(
    server.lines.some((line) => JSON.stringify(line).includes("secret") && line["requestId"] !== undefined),
  );
});

test("deadlines and cancellation abort the call with a Lance error", async () => {
  const reasons: unknown[] = [];
  let onBegun = () => {};
  await using server = await startConnect({
    ...fakeService(),
    async unary(_method, _request, call) {
      onBegun();
      if (!call.signal.aborted) await once(call.signal, "abort");
      reasons.push(call.signal.reason);
      throw call.signal.reason;
    },
  });
  for (const { client } of server.clients) {
    const controller = new AbortController();
    onBegun = () => controller.abort();
    const before = reasons.length;
    await assert.rejects(client.describeTable({}, { signal: controller.signal }));
    await expect.poll(() => reasons.length).toBe(before + 1);
  }
  const late = await fetch(`${server.http1}${DESCRIBE}`, {
    method: "POST",
    headers: { "content-type": "application/json", "connect-timeout-ms": "50" },
    body: "{}",
  });
  assert.equal(late.status, 504);
  await expect.poll(() => reasons.length).toBe(server.clients.length + 1);
  const names = reasons.map((reason) => reason instanceof LanceError && reason.entry.name);
  assert.deepEqual(names, [...server.clients.map(() => "Cancelled"), "DeadlineExceeded"]);
});

test("the size limit holds for every protocol, and inside uploads", async () => {
  let seen: unknown;
  await using server = await startConnect(
    {
      ...fakeService(),
      async upload(_method, _request, data) {
        try {
          for await (const _ of data);
        } catch (error) {
          seen = error;
          throw error;
        }
        return create(CreateTableResponseSchema, {});
      },
    },
    1000,
  );
  for (const { client } of server.clients) {
    const unary = await client.describeTable({ id: ["x".repeat(2000)] }).catch((error) => error);
    assert.equal(ConnectError.from(unary).code, Code.ResourceExhausted);
    assert.equal(ConnectError.from(unary).findDetails(ErrorResponseSchema)[0]?.status, 413);
    async function* pieces() {
      yield { id: ["t"] };
      yield { data: { data: Buffer.alloc(2000) } };
    }
    const upload = await client.createTable(pieces()).catch((error) => error);
    assert.equal(ConnectError.from(upload).code, Code.ResourceExhausted);
    assert.ok(seen instanceof LanceError && seen.is("PayloadTooLarge"));
  }
});

test("a message that is too large says so in the error's detail, also when it is packed", async () => {
  await using server = await startConnect(fakeService(), 1000);
  const json = JSON.stringify({ id: ["x".repeat(2000)] });
  const bodies: RequestInit[] = [
    { body: json },
    { body: gzipSync(json), headers: { "content-encoding": "gzip" } },
    { body: gzipSync(randomBytes(2000)), headers: { "content-encoding": "gzip" } },
    { body: new Blob([json]).stream(), duplex: "half" },
  ];
  for (const { headers, ...init } of bodies) {
    const response = await fetch(server.http1 + DESCRIBE, {
      method: "POST",
      headers: { "content-type": "application/json", ...(headers as Record<string, string>) },
      ...init,
    });
    assert.equal(response.status, 429);
    const { code, details } = (await response.json()) as { code: string; details: { type: string }[] };
    assert.equal(code, "resource_exhausted");
    assert.equal(details[0]?.type, ErrorResponseSchema.typeName);
  }
});

test("a method that there is not is answered in the caller's own protocol", async () => {
  await using server = await startConnect(fakeService());
  const post = (headers: Record<string, string>) =>
    fetch(`${server.http1}/no.such.Service/Method`, { method: "POST", headers, body: "x" });
  const unary: Record<string, string>[] = [
    { "content-type": "application/proto" },
    { "content-type": "application/json", "connect-protocol-version": "1" },
  ];
  for (const headers of unary) {
    const response = await post(headers);
    assert.equal(response.status, 404);
    const { code, details } = (await response.json()) as { code: string; details: unknown[] };
    assert.equal(code, "unimplemented");
    assert.equal(details.length, 1);
  }
  const stream = await post({ "content-type": "application/connect+proto" });
  assert.equal(stream.headers.get("content-type"), "application/connect+proto");
  assert.match(await stream.text(), /"code":"unimplemented"/);
  const web = await post({ "content-type": "application/grpc-web+proto" });
  assert.equal(web.headers.get("content-type"), "application/grpc-web+proto");
  assert.match((await web.text()) + web.headers.get("grpc-status"), /grpc-status: ?12|^12$/);
  const text = await post({ "content-type": "application/grpc-web-text" });
  assert.equal(text.headers.get("content-type"), "application/grpc-web-text+proto");
  const trailers = Buffer.from(await text.text(), "base64").toString("latin1");
  assert.match(trailers + text.headers.get("grpc-status"), /grpc-status: ?12|12$/);
  const rest = await post({ "content-type": "application/json" });
  assert.match(await rest.text(), /"kind":"RouteNotFound"/);
});

test("JSON of Connect is protobuf JSON, and other paths are not taken", async () => {
  await using server = await startConnect(fakeService());
  const headers = { "content-type": "application/json" };
  const response = await fetch(server.http1 + DESCRIBE, { method: "POST", headers, body: '{"id":["a"]}' });
  assert.deepEqual(await response.json(), { table: "t" });
  assert.match(response.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
  assert.equal((await fetch(`${server.http1}/v1/x`)).status, 404);
  assert.equal((await fetch(server.http1 + DESCRIBE, { method: "POST", body: "x" })).status, 415);
});

test("the call of a long message starts in a later turn than its decoding", async () => {
  let turns = 0;
  const pace = { enter: () => false, turn: async () => void turns++, noteConnection() {} };
  let started = 0;
  const service = fakeService({
    async unary() {
      started = turns;
      return create(DescribeTableResponseSchema);
    },
  });
  await using server = await startConnect(service, undefined, { pace });
  const turnsOf = async (client: (typeof server.clients)[number]["client"], id: string[]) => {
    turns = 0;
    await client.describeTable({ id });
    return started;
  };
  for (const { client } of server.clients) {
    assert.equal(await turnsOf(client, ["a"]), 0);
    // Before the check of the message, before its decoding, and after it.
    assert.equal(await turnsOf(client, ["a", "b".repeat(40_000)]), 3);
  }
});

test("refuses JSON that is not UTF-8, also packed and in envelopes", async () => {
  await using server = await startConnect(fakeService());
  const faulty = Buffer.from('{"id":["a\xff"]}', "latin1");
  const head = Buffer.from([0, 0, 0, 0, faulty.length]);
  const requests = [
    [{ "content-type": "application/json" }, faulty],
    [{ "content-type": "application/json", "content-encoding": "gzip" }, gzipSync(faulty)],
    [{ "content-type": "application/grpc-web+json" }, Buffer.concat([head, faulty])],
  ] as const;
  for (const [headers, body] of requests) {
    const answer = await fetch(`${server.http1}${DESCRIBE}`, { method: "POST", headers, body });
    const told = (await answer.text()) + answer.headers.get("grpc-message");
    assert.match(decodeURIComponent(told), /a message in JSON is not valid UTF-8/);
  }
});
