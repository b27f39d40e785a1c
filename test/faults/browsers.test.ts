import assert from "node:assert/strict";
import { connect } from "node:http2";
import { afterAll, beforeAll, describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { jsonOf, type RawAnswer, type RawRequest, sendHttp } from "../support/http.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const APP = "https://app.example.com";
const SERVICE = "/lance.namespace.v1.LanceNamespaceService";

/** Headers that browsers send with a request that a page of another site starts. */
const FOREIGN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "fetch of a foreign page": { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
  "fetch of a page on another port": { origin: "http://localhost:5173", "sec-fetch-site": "same-site" },
  "link, form or image of a foreign page": { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
  "old browser": { origin: "https://evil.example" },
  "sandboxed frame": { origin: "null" },
  "page by a name of its own for this address": {
    host: "evil.example:2333",
    "sec-fetch-site": "same-origin",
  },
};

/** Headers of requests that are not from a foreign page. */
const FRIENDLY: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  program: {},
  "page of the server itself": { "sec-fetch-site": "same-origin" },
  "address that somebody typed": { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" },
  "page that may call": { origin: APP, "sec-fetch-site": "cross-site" },
  "page that may call in an old browser": { origin: APP },
  "program on another name of loopback": { host: "gateway.localhost:2333" },
};

const json = { "content-type": "application/json" };

/** Requests for each kind of operation; a foreign page must not cause an effect or run SQL through any of them. */
const REQUESTS: Readonly<Record<string, RawRequest>> = {
  "POST without anything": { path: "/v1/table/ns$t/drop" },
  "POST of JSON": { path: "/v1/table/ns$t/delete", headers: json, body: '{"predicate":"true"}' },
  "POST without a content type": { path: "/v1/table/ns$t/delete", body: '{"predicate":"true"}' },
  "GET with SQL": { method: "GET", path: "/v1/table/ns$t/count_rows?predicate=true" },
  "GET of a list": { method: "GET", path: "/v1/namespace/$/list" },
  Connect: { path: `${SERVICE}/DropTable`, headers: json, body: '{"id":["ns","t"]}' },
  "GET of Connect": {
    method: "GET",
    path: `${SERVICE}/CountTableRows?connect=v1&encoding=json&message=${encodeURIComponent('{"id":["ns","t"]}')}`,
  },
  "gRPC-Web": {
    path: `${SERVICE}/DropTable`,
    headers: { "content-type": "application/grpc-web+proto" },
    body: Buffer.from("0000000008" + "0a026e730a0174aa", "hex"),
  },
  preflight: {
    method: "OPTIONS",
    path: "/v1/table/ns$t/drop",
    headers: { "access-control-request-method": "POST" },
  },
  "unknown path": { path: "/v1/nothing" },
};

const FORM_TYPES = [
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "text/plain",
  " Text/Plain;charset=utf-8",
];

describe("requests of browsers", () => {
  let server: DirectoryServer;
  let grpc: ProtocolClient;
  let client: LanceClient;
  beforeAll(async () => {
    server = await startDirectoryServer({ corsOrigins: [APP] });
    grpc = createGrpcClient(server.port);
    client = grpc.client;
    await client.createNamespace({ id: ["ns"] });
    await client.createTable({ id: ["ns", "t"] }, personStream(people(3)));
  });
  afterAll(async () => {
    grpc.close();
    await server.close();
  });

  const send = (
    { headers, ...rest }: RawRequest,
    more: Readonly<Record<string, string>>,
  ): Promise<RawAnswer> => sendHttp(server.port, { ...rest, headers: { ...headers, ...more } });

  for (const [who, headers] of Object.entries(FOREIGN)) {
    test(`are refused on every wire when they come from a ${who}`, async () => {
      for (const [what, request] of Object.entries(REQUESTS)) {
        const answer = await send(request, headers);
        assert.equal(answer.status, 403, what);
        assert.equal(jsonOf(answer)["code"], 15, what);
        assert.equal(answer.headers["access-control-allow-origin"], undefined, what);
      }
      assert.equal((await client.countTableRows({ id: ["ns", "t"] })).count, 3n);
    });
  }

  for (const [who, headers] of Object.entries(FRIENDLY)) {
    test(`are served when they come from a ${who}`, async () => {
      const path = "/v1/table/ns$t/count_rows";
      assert.equal((await send({ path, headers: json, body: "{}" }, headers)).status, 200);
      assert.equal((await send({ method: "GET", path }, headers)).status, 200);
      const rpc = { path: `${SERVICE}/CountTableRows`, headers: json, body: '{"id":["ns","t"]}' };
      assert.equal((await send(rpc, headers)).status, 200);
    });
  }

  test("get the probes under any host name, and a link leads to the metrics", async () => {
    const foreign = { host: "10-0-0-1.pod.cluster.local", "sec-fetch-site": "cross-site" };
    for (const path of ["/healthz", "/readyz"]) {
      assert.notEqual((await send({ method: "GET", path }, foreign)).status, 403);
    }
    const linked = await send({ method: "GET", path: "/metrics" }, { "sec-fetch-site": "cross-site" });
    assert.notEqual(linked.status, 403);
    assert.equal((await send({ method: "GET", path: "/metrics" }, foreign)).status, 403);
  });

  test("of a media type that any form can send are refused, also when they are empty", async () => {
    const arrow = personStream(people(2));
    for (const contentType of FORM_TYPES) {
      for (const [path, body] of [
        ["/v1/table/ns$t/drop", ""],
        ["/v1/table/ns$t/delete", '{"predicate":"true"}'],
        ["/v1/table/ns$t/insert", arrow],
        ["/v1/table/ns$t/index/i/drop", ""],
      ] as const) {
        const answer = await send({ path, body }, { "content-type": contentType });
        assert.equal(answer.status, 415, `${contentType} ${path}`);
      }
    }
    assert.equal((await client.countTableRows({ id: ["ns", "t"] })).count, 3n);
  });

  test("are recognized over HTTP/2 by the host in :authority, which gRPC clients choose freely", async () => {
    const session = connect(`http://127.0.0.1:${server.port}`);
    const ask = (headers: Readonly<Record<string, string>>) =>
      new Promise<number>((resolve, reject) => {
        const stream = session.request({ ":method": "GET", ":path": "/v1/namespace/$/list", ...headers });
        stream.on("response", ({ ":status": status = 0 }) => resolve(status)).on("error", reject);
        stream.resume();
      });
    assert.equal(await ask({ ":authority": "evil.example" }), 403);
    assert.equal(await ask({ ":authority": "localhost:2333" }), 200);
    const call = session.request({
      ":method": "POST",
      ":path": `${SERVICE}/ListNamespaces`,
      ":authority": "catalog.mesh.example",
      "content-type": "application/grpc",
      te: "trailers",
    });
    call.end(Buffer.alloc(5));
    const status = await new Promise((resolve) => {
      call.on("trailers", (trailers) => resolve(trailers["grpc-status"]));
      call.resume();
    });
    assert.equal(status, "0");
    session.close();
  });
});
