import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type DirectoryServer, startDirectoryServer } from "../../../test/support/server.ts";

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
