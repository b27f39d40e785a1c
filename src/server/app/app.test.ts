import assert from "node:assert/strict";
import { connect } from "node:http2";
import fastify from "fastify";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";
import { type DirectoryServer, startDirectoryServer } from "../../../test/support/server.ts";
import { addRootPage } from "./app.ts";

test("a method that a client of HTTP/2 invents gets 405, whatever the path", async () => {
  await using server = await startServer();
  const session = connect(server.url);
  try {
    for (const path of ["/v1/x", "/nothing/here", "/healthz"]) {
      const stream = session.request({ ":method": "INVENTED", ":path": path });
      const [headers] = await new Promise<[Record<string, unknown>]>((resolve, reject) =>
        stream.on("response", (...args) => resolve(args as never)).on("error", reject),
      );
      expect([headers[":status"], headers["allow"]], path).toEqual([405, "GET, HEAD, POST"]);
      stream.close();
    }
  } finally {
    session.destroy();
  }
});

const ORIGIN = "https://app.example.com";

describe("calls from pages of other origins", () => {
  let server: DirectoryServer;
  let any: DirectoryServer;
  let none: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer({ corsOrigins: [ORIGIN, "http://localhost:5173"] });
    any = await startDirectoryServer({ corsOrigins: ["*"] });
    none = await startDirectoryServer();
  });
  afterAll(async () => {
    for (const each of [server, any, none]) await each.close();
  });

  const paths = ["/v1/namespace/$/list", "/lance.namespace.v1.LanceNamespaceService/ListNamespaces"];

  function preflight({ port }: DirectoryServer, path: string, origin = ORIGIN) {
    const headers = {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,connect-protocol-version,content-type",
    };
    return fetch(`http://127.0.0.1:${port}${path}`, { method: "OPTIONS", headers });
  }

  function list({ port }: DirectoryServer, contentType: string, path: string, origin: string) {
    const headers = { origin, "content-type": contentType, authorization: "Bearer x" };
    return fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body: "{}" });
  }

  it("answers a preflight with the methods and the headers that were asked for", async () => {
    for (const path of paths) {
      const { status, headers } = await preflight(server, path);
      assert.equal(status, 204);
      assert.equal(headers.get("access-control-allow-origin"), ORIGIN);
      assert.equal(headers.get("access-control-allow-methods"), "GET, POST");
      assert.match(
        headers.get("access-control-allow-headers") ?? "",
        /^authorization,connect-protocol-version/,
      );
      assert.match(headers.get("vary") ?? "", /\borigin\b/i);
      assert.equal(headers.get("access-control-allow-credentials"), null);
    }
  });

  it("lets pages read answers and their headers, failures too", async () => {
    const types = ["application/json", "application/json"];
    for (const [index, path] of [...paths, "/v1/namespace/missing/describe"].entries()) {
      const { status, headers } = await list(server, types[index] ?? "application/json", path, ORIGIN);
      assert.equal(status, path.includes("missing") ? 404 : 200, path);
      assert.equal(headers.get("access-control-allow-origin"), ORIGIN);
      assert.equal(headers.get("access-control-expose-headers"), "*");
      assert.ok(headers.get("x-request-id"));
    }
  });

  it("covers gRPC-Web", async () => {
    const path = paths[1] as string;
    const url = `http://127.0.0.1:${server.port}${path}`;
    const headers = { origin: ORIGIN, "content-type": "application/grpc-web+proto" };
    const body = new Uint8Array(5);
    const answer = await fetch(url, { method: "POST", headers, body });
    assert.equal(answer.headers.get("access-control-allow-origin"), ORIGIN);
    assert.match(await answer.text(), /grpc-status: ?0/);
  });

  it("allows any origin on request, and then caches need not tell them apart", async () => {
    const { headers } = await preflight(any, paths[0] as string, "https://elsewhere.example");
    assert.equal(headers.get("access-control-allow-origin"), "*");
    assert.doesNotMatch(headers.get("vary") ?? "", /\borigin\b/i);
  });

  it("refuses other origins, and says nothing to them", async () => {
    for (const [on, origin] of [
      [server, "https://evil.example"],
      [server, "null"],
      [none, ORIGIN],
    ] as const) {
      const { headers, status } = await preflight(on, paths[0] as string, origin);
      assert.equal(status, 403);
      assert.equal(headers.get("access-control-allow-origin"), null);
      const answer = await list(on, "application/json", paths[0] as string, origin);
      assert.equal(answer.status, 403);
      assert.equal(answer.headers.get("access-control-allow-origin"), null);
    }
  });
});

function createApp(options = { console: true, documents: true, metrics: true, mcp: true }) {
  const app = fastify();
  addRootPage(app, options);
  return app;
}

describe("the page at /", () => {
  test("says what is where, in text", async () => {
    const { statusCode, headers, body } = await createApp().inject("/");
    expect([statusCode, headers["content-type"], headers.vary]).toEqual([200, "text/plain", "accept"]);
    for (const path of [
      "/v1",
      "/lance.namespace.v1.LanceNamespaceService/",
      "/docs",
      "/console/",
      "/metrics",
      "/mcp",
    ])
      expect(body).toMatch(new RegExp(`^ {2}${path} +\\w`, "m"));
  });

  test("says it as JSON to programs that accept that", async () => {
    const { json } = await createApp().inject({ url: "/", headers: { accept: "application/json" } });
    expect(json().paths["/v1"]).toMatch(/^REST API/);
  });

  test("names what is turned on alone, and leads browsers to the console if there is one", async () => {
    const browser = { url: "/", headers: { accept: "text/html,*/*" } };
    expect((await createApp().inject(browser)).headers.location).toBe("console/");
    const { headers, body } = await createApp({
      console: false,
      documents: false,
      metrics: false,
      mcp: false,
    }).inject(browser);
    expect([headers["content-type"], headers.location]).toEqual(["text/plain", undefined]);
    expect(body).not.toMatch(/console|docs|metrics|mcp/);
  });

  test("gives way to a route of a plugin, and leaves other methods alone", async () => {
    const app = createApp();
    app.get("/", () => "of the plugin");
    expect((await app.inject("/")).body).toBe("of the plugin");
    expect((await createApp().inject({ method: "POST", url: "/" })).statusCode).toBe(404);
    expect((await createApp().inject({ method: "HEAD", url: "/" })).statusCode).toBe(200);
  });
});
