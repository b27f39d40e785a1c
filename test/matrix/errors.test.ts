import assert from "node:assert/strict";
import { create, fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, test } from "vitest";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { ErrorResponseSchema } from "../../src/gen/lance/namespace/v1/common_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableRequestSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import {
  ERROR_TABLE,
  type ErrorName,
  errorEntry,
  LanceError,
  PUBLIC_ERROR_COUNT,
} from "../../src/namespace/errors.ts";
import { CallError, type ProtocolClient } from "../support/client.ts";
import { errorDetail } from "../support/grpc-client.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const MESSAGE = 'the "message" of é';

/** Fails with the row of the error table that the request's identifier names. */
const backend = fakeBackend({
  describeTable: async (_, call) => {
    const [name = ""] = call.id;
    if (name === "unknown") throw new Error("secret: s3://bucket/key");
    throw new LanceError(name as ErrorName, MESSAGE, {
      detail: "a longer text",
      headers: { "retry-after": "7" },
    });
  },
});

describe("errors on every wire", () => {
  let server: TestServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    server = await startServer(backend);
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });

  const failing = async (protocol: string, name: string) => {
    const { client } = clients[protocol] as ProtocolClient;
    const thrown = await client.describeTable({ id: [name] }).catch((error: unknown) => error);
    assert.ok(thrown instanceof CallError, String(thrown));
    return thrown;
  };

  for (const { name, code, httpStatus, grpcCode } of ERROR_TABLE.slice(0, PUBLIC_ERROR_COUNT)) {
    test(`${name} keeps its code, HTTP status and gRPC code`, async () => {
      for (const protocol of Object.keys(PROTOCOLS)) {
        const { failure } = await failing(protocol, name);
        assert.deepEqual(failure, protocol === "REST" ? { code, httpStatus } : { code, grpcCode }, protocol);
      }
    });
  }

  test("a name that JSON has twice is InvalidInput, because readers differ in which of the two counts", async () => {
    const rpc = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";
    const properties = JSON.stringify(
      Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`k${at}`, 1])),
    );
    const bodies = ['{"id":["Internal"],"id":["a"]}', `{"id":["Internal"],"x":${properties},"id":["a"]}`];
    for (const path of [rpc, "/v1/table/a/describe"]) {
      for (const body of bodies) {
        const headers = { "content-type": "application/json" };
        const answer = await sendHttp(server.port, { path, headers, body });
        const { code, error, message } = jsonOf(answer);
        assert.equal(answer.status, 400, path);
        assert.equal(code, path === rpc ? "invalid_argument" : errorEntry("InvalidInput").code);
        assert.match(String(error ?? message), /\bid\b/);
      }
    }
  });

  test("a REST error has both known shapes at once", async () => {
    const headers = { "x-request-id": "my-id" };
    const answer = await sendHttp(server.port, {
      path: "/v1/table/TableNotFound/describe",
      body: "{}",
      headers,
    });
    assert.equal(answer.headers["content-type"]?.split(";")[0], "application/json");
    assert.equal(answer.headers["x-request-id"], "my-id");
    assert.equal(answer.headers["retry-after"], "7");
    assert.deepEqual(jsonOf(answer), {
      error: MESSAGE,
      code: 4,
      kind: "TableNotFound",
      type: "/errors/not-found-error",
      title: "Not found Error",
      status: 404,
      detail: "a longer text",
      instance: "/v1/table/TableNotFound/describe",
    });
  });

  test("a gRPC error has a rich status with the Lance code", async () => {
    const { cause } = await failing("gRPC", "TableNotFound");
    const error = cause as ServiceError;
    assert.equal(error.details, MESSAGE);
    const [bytes] = error.metadata.get("grpc-status-details-bin");
    const status = fromBinary(StatusSchema, bytes as Buffer);
    assert.deepEqual([status.code, status.message, status.details.length], [5, MESSAGE, 1]);
    const detail = errorDetail(error);
    assert.deepEqual([detail?.code, detail?.error, detail?.status], [4, MESSAGE, 404]);
    assert.deepEqual([detail?.kind, detail?.type], ["TableNotFound", "/errors/not-found-error"]);
    assert.deepEqual(error.metadata.get("retry-after"), ["7"]);
  });

  test("a Connect error has the detail too, also as JSON", async () => {
    const transport = createConnectTransport({
      baseUrl: `http://127.0.0.1:${server.port}`,
      httpVersion: "1.1",
      useBinaryFormat: false,
    });
    const request = create(DescribeTableRequestSchema, { id: ["TableNotFound"] });
    const method = LanceNamespaceService.method.describeTable;
    const error = await transport
      .unary(method, undefined, undefined, undefined, request)
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ConnectError);
    assert.equal(error.code, Code.NotFound);
    assert.equal(error.rawMessage, MESSAGE);
    assert.equal(error.findDetails(ErrorResponseSchema)[0]?.code, 4);
  });

  test("an unknown failure is an opaque Internal", async () => {
    for (const protocol of Object.keys(PROTOCOLS)) {
      const { failure, message } = await failing(protocol, "unknown");
      assert.equal(failure.code, 18, protocol);
      assert.ok(!message.includes("secret"), message);
    }
  });

  const requests = {
    "an unknown path": [{ path: "/v1/nothing" }, 404, 0],
    "an unknown path outside the API": [{ path: "/nothing", method: "GET" }, 404, 0],
    "a wrong method": [{ path: "/v1/table/t/describe", method: "DELETE" }, 405, 0],
    "malformed JSON": [{ path: "/v1/table/t/describe", body: "{" }, 400, 13],
    "a JSON array": [{ path: "/v1/table/t/describe", body: "[]" }, 400, 13],
    "a wrong type": [{ path: "/v1/table/t/describe", body: '{"version":"x"}' }, 400, 13],
    "a broken escape": [{ path: "/v1/table/%zz/describe", body: "{}" }, 400, 13],
    "a wrong query value": [{ path: "/v1/table?limit=x", method: "GET" }, 400, 13],
  } as const;
  for (const [what, [request, status, code]] of Object.entries(requests)) {
    test(`REST: ${what} is ${status} with an error body`, async () => {
      const answer = await sendHttp(server.port, request);
      assert.equal(answer.status, status);
      const body = jsonOf(answer);
      assert.deepEqual([body["code"], body["status"]], [code, status]);
      assert.equal(typeof body["error"], "string");
    });
  }

  test("REST: a 405 names the allowed methods", async () => {
    const answer = await sendHttp(server.port, { path: "/v1/table/t/describe", method: "DELETE" });
    assert.equal(answer.headers.allow, "POST");
  });
});
