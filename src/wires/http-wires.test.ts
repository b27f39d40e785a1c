import assert from "node:assert/strict";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { expect, test } from "vitest";
import { fakeService, memoryLog } from "../../test/fixtures/wires/grpc.ts";
import { DIALECTS } from "../dialects/registry.ts";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Service } from "../namespace/service.ts";
import { createTranscoder } from "../transcode/transcoder.ts";
import { createTargetRewrite, httpWires } from "./http-wires.ts";
import { serviceRpcs } from "./rpc.ts";

const SERVICES = [LanceNamespaceService, LanceDbService];
const transcoders = DIALECTS.map((dialect) => createTranscoder(SERVICES, dialect));
const rewrite = createTargetRewrite(transcoders);
const RPC = `/${LanceNamespaceService.typeName}/DescribeTable`;

/** Options of an application that has nothing else to serve. */
const ALONE: FastifyServerOptions = {
  rewriteUrl: ({ url = "" }) => rewrite(url),
  routerOptions: { maxParamLength: Number.MAX_SAFE_INTEGER },
};

async function start(
  service: Service,
  { server = ALONE, prefix = "", before = (_app: FastifyInstance): unknown => undefined } = {},
) {
  const app = fastify(server);
  before(app);
  const wires = { service, rpcs: serviceRpcs(LanceNamespaceService, service), log: memoryLog().log };
  app.register(httpWires, { ...wires, transcoders, prefix });
  await app.ready();
  return app;
}

/** A service whose answers tell the identifier and the index of the request. */
const echo = fakeService({
  unary: async (method: DescMethod, request: Message) => {
    const { identifier, indexName } = request as unknown as Record<string, string>;
    return create(method.output, { indexType: JSON.stringify([identifier, indexName]) } as never);
  },
});

test("each HTTP method and path of the contract is a route that Fastify prints", async () => {
  await using app = await start(fakeService(), { server: {} });
  for (const { httpMethod, template } of transcoders.flatMap(({ bindings }) => bindings)) {
    const url = template.source.replace(/\{(\w+)\}/g, ":$1");
    expect(app.hasRoute({ method: httpMethod as "GET", url }), `${httpMethod} ${url}`).toBe(true);
  }
  expect(app.printRoutes()).toMatch(/describe \(POST\)/);
});

test("values survive the path, with any number of slashes around it", async () => {
  await using app = await start(echo);
  const value = fc
    .oneof(
      fc.string({ unit: "grapheme", minLength: 1 }),
      fc.constantFrom(
        "%",
        "%25",
        "+",
        "a/b",
        "$",
        "a$b",
        " ",
        "ä",
        "日本",
        ":read",
        "a#b",
        "*",
        "a?b",
        "x".repeat(500),
      ),
    )
    .filter((text) => !/(?:^|[/\\]|%2f|%5c)(?:\.|%2e)+(?:;.*?)?(?:$|[/\\]|%2f|%5c)/is.test(text));
  await fc.assert(
    fc.asyncProperty(value, value, fc.nat(3), async (identifier, index, slashes) => {
      const around = "/".repeat(slashes);
      const path = `/v1/table/${encodeURIComponent(identifier)}/index/${encodeURIComponent(index)}/stats`;
      const { statusCode, payload } = await app.inject({ method: "POST", url: around + path + around });
      assert.deepEqual(
        [statusCode, JSON.parse(payload).index_type],
        [200, JSON.stringify([identifier, index])],
      );
    }),
  );
});

test("an unknown path gets 404, and another method 405 with the methods that the path takes", async () => {
  await using app = await start(fakeService());
  const ask = (method: "DELETE" | "GET" | "PUT" | "OPTIONS" | "HEAD", url: string) =>
    app.inject({ method, url });
  expect((await ask("GET", "/v1/nothing")).statusCode).toBe(404);
  expect((await ask("GET", "/v1/table//describe")).statusCode).toBe(404);
  for (const [method, url, allow] of [
    ["PUT", "/v1/table/t/stats/", "GET, HEAD, POST"],
    ["DELETE", "/v1/namespace/n/list", "GET, HEAD, POST"],
    ["OPTIONS", "/v1/table/t/describe", "POST"],
    ["HEAD", "/v1/table/t/describe", "POST"],
  ] as const) {
    const { statusCode, headers } = await ask(method, url);
    expect([statusCode, headers.allow], url).toEqual([405, allow]);
  }
});

test("a path with broken escapes is the client's fault", async () => {
  await using app = await start(fakeService());
  for (const bad of ["%2Fa%", "a%2"]) {
    const url = `/v1/table/${bad}/describe`;
    expect((await app.inject({ method: "POST", url })).statusCode, bad).toBe(400);
  }
});

test("a Connect request whose host cannot be read gets 400, for known and unknown methods", async () => {
  await using app = await start(fakeService());
  const headers = { host: "not a host", "content-type": "application/json", "connect-protocol-version": "1" };
  for (const url of [RPC, `/${LanceNamespaceService.typeName}/Nothing`]) {
    const { statusCode } = await app.inject({ method: "POST", url, headers, payload: "{}" });
    expect(statusCode, url).toBe(400);
  }
});

test("an application that does not serve HEAD does not allow it either", async () => {
  await using app = await start(fakeService(), { server: { ...ALONE, exposeHeadRoutes: false } });
  const { headers } = await app.inject({ method: "DELETE", url: "/v1/namespace/n/list" });
  expect(headers.allow).toBe("GET, POST");
});

test("a malformed content type gets 415", async () => {
  await using app = await start(fakeService());
  const headers = { "content-type": "nonsense" };
  const { statusCode, payload } = await app.inject({
    method: "POST",
    url: "/v1/table/t/describe",
    headers,
    payload: "{}",
  });
  expect([statusCode, JSON.parse(payload).type]).toEqual([415, "/errors/unsupported-media-type"]);
});

test("the wires live below a prefix of an application that has routes, parsers and errors of its own", async () => {
  await using app = await start(echo, {
    server: {},
    prefix: "/lance/api",
    before(outer) {
      outer.setErrorHandler((_error, _request, reply) => reply.code(500).send("theirs"));
      outer.setNotFoundHandler((_request, reply) => reply.code(404).send("theirs"));
      outer.post("/echo", async ({ body }) => body);
      outer.get("/fail", async () => {
        throw new Error("theirs");
      });
    },
  });
  const post = (url: string, payload: object = {}) => app.inject({ method: "POST", url, payload });
  const describe = await post("/lance/api/v1/table/a%24b/index/i/stats");
  expect(JSON.parse(describe.payload).index_type).toBe('["a$b","i"]');
  expect((await post("/lance/api/v1/table/a/index/i/stats/")).statusCode).toBe(200);
  expect((await post(`/lance/api${RPC}`)).statusCode).toBe(200);
  expect(JSON.parse((await post("/lance/api/v1/nothing")).payload).kind).toBe("RouteNotFound");
  expect((await post("/nothing")).payload).toBe("theirs");
  expect((await app.inject("/fail")).payload).toBe("theirs");
  expect(JSON.parse((await post("/echo", { a: 1 })).payload)).toEqual({ a: 1 });
});

test("hooks of an application come before the wires", async () => {
  await using app = await start(fakeService(), {
    before: (outer) =>
      outer.addHook("onRequest", async ({ headers }, reply) => {
        if (headers.authorization === undefined) return reply.code(401).send("no");
        reply.header("x-seen", "yes");
      }),
  });
  for (const url of ["/v1/table/t/describe", RPC]) {
    expect((await app.inject({ method: "POST", url, payload: {} })).statusCode, url).toBe(401);
    const headers = { authorization: "Bearer x" };
    const answer = await app.inject({ method: "POST", url, payload: {}, headers });
    expect([answer.statusCode, answer.headers["x-seen"]], url).toEqual([200, "yes"]);
  }
});
