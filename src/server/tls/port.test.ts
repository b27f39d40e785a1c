import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type RequestOptions, request } from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { makeTlsFiles } from "../../../test/fixtures/server/tls.ts";
import { callUnary, fakeService, rawCall, statusOf } from "../../../test/fixtures/wires/grpc.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { ClientCertificate } from "../../namespace/call/call.ts";
import { peerOf } from "../../wires/arrival.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";
import { NEEDS_TLS } from "../port/entrance.ts";
import type { TlsIdentity } from "./identity.ts";

const EMPTY = encodeFrame(new Uint8Array(0), false);
const HEALTH = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

let world: Awaited<ReturnType<typeof makeTlsFiles>>;
let tls: TlsIdentity;
beforeAll(async () => {
  world = await makeTlsFiles();
  ({ identity: tls } = await world.open());
});
afterAll(async () => {
  tls.close();
  await world[Symbol.asyncDispose]();
});

/** Makes a handshake; rejects if it fails. */
async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", ca: world.ca, ...options });
  await once(socket, "secureConnect");
  socket.on("error", () => {});
  return socket;
}

/** Sends a request of HTTP/1.1 and returns the answer. */
async function exchange(socket: TLSSocket, text = HEALTH): Promise<string> {
  let answer = "";
  socket.on("data", (piece) => {
    answer += piece;
  });
  socket.write(text);
  await once(socket, "close");
  return answer;
}

async function get(url: string, options: RequestOptions = {}): Promise<number> {
  const [response] = await once(request(url, { ca: world.ca, agent: false, ...options }).end(), "response");
  response.resume();
  return response.statusCode;
}

const closing = (socket: { once(event: "close", listener: () => void): unknown }) =>
  new Promise<void>((resolve) => socket.once("close", () => resolve()));

describe("a port that speaks TLS", () => {
  it("serves gRPC, HTTP/2 and HTTP/1.1 by ALPN", async () => {
    await using server = await startServer({ tls });
    const client = new Client(`localhost:${server.port}`, credentials.createSsl(Buffer.from(world.ca)));
    const { error, response } = await callUnary(client, {}, new Metadata());
    assert.deepEqual([error, response?.["table"]], [null, "t"]);
    client.close();
    const session = connectHttp2(server.url, { ca: world.ca });
    assert.equal(statusOf(await rawCall(session, EMPTY)), 0);
    const rest = await rawCall(session, Buffer.from("abcd"), {
      ":path": "/v1/y",
      "content-type": "text/plain",
    });
    assert.equal(rest.body.toString(), "rest POST /v1/y 4");
    assert.equal(session.alpnProtocol, "h2");
    session.close();
    assert.equal(await get(`${server.url}/v1/x`), 200);
  });

  it("knows the address of a client that has reset its connection", async () => {
    const served = Promise.withResolvers<Socket>();
    await using server = await startServer({ tls, rest: ({ socket }) => served.resolve(socket) });
    const carrier = connectTcp(server.port, "127.0.0.1");
    const socket = await handshake(server.port, { socket: carrier });
    socket.write(HEALTH.replace("/healthz", "/v1/x"));
    const connection = await served.promise;
    carrier.resetAndDestroy();
    await closing(connection);
    assert.equal(peerOf(connection).peer, "127.0.0.1");
  });

  it("decides by the first bytes where a client chooses no protocol", async () => {
    await using server = await startServer({ tls });
    const socket = await handshake(server.port);
    assert.equal(socket.alpnProtocol, false);
    assert.match(await exchange(socket), /^HTTP\/1\.1 200 OK/);
    const session = connectHttp2(server.url, {
      createConnection: () => connect({ port: server.port, host: "127.0.0.1", ca: world.ca }),
    });
    assert.equal(statusOf(await rawCall(session, EMPTY)), 0);
    session.close();
  });

  it("ends a connection whose bytes are not those of the protocol that its client chose", async () => {
    await using server = await startServer({ tls });
    assert.equal(await exchange(await handshake(server.port, { ALPNProtocols: ["h2"] })), "");
  });

  it("speaks TLS 1.2 and 1.3 and nothing older, and keeps old traffic secret", async () => {
    await using server = await startServer({ tls });
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const socket = await handshake(server.port, { minVersion: version, maxVersion: version });
      assert.equal(socket.getProtocol(), version);
      assert.match(socket.getCipher().standardName, /GCM|CHACHA20/);
      socket.destroy();
    }
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await assert.rejects(handshake(server.port, old), /alert protocol version/i);
    // The key exchange by RSA, and block ciphers, of which TLS 1.2 has many.
    for (const ciphers of ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"])
      await assert.rejects(handshake(server.port, { maxVersion: "TLSv1.2", ciphers }), /handshake failure/i);
  });

  it("refuses renegotiation", async () => {
    await using server = await startServer({ tls });
    const socket = await handshake(server.port, { maxVersion: "TLSv1.2" });
    const refused = new Promise<Error | null>((resolve) => socket.renegotiate({}, resolve));
    assert.match(String(await Promise.race([refused, once(socket, "error")])), /renegotiation/i);
    socket.destroy();
  });

  it("tells clients that speak plain text what to use", async () => {
    await using server = await startServer({ tls });
    const plain = await fetch(`http://${server.address}/v1/x`, { method: "POST", body: "a secret" });
    assert.equal(plain.status, 400);
    assert.equal(plain.headers.get("connection"), "close");
    assert.match(await plain.text(), /speaks TLS: use https:\/\//);
    const session = connectHttp2(`http://${server.address}`);
    session.on("error", () => {});
    const goaway = once(session, "goaway");
    const rest = await rawCall(session, undefined, {
      ":method": "GET",
      ":path": "/v1/x",
      "content-type": undefined,
    });
    assert.deepEqual([rest.headers[":status"], rest.body.toString()], [400, `${NEEDS_TLS}\n`]);
    const [code, , text] = await goaway;
    assert.deepEqual([code, String(text)], [0xc, NEEDS_TLS]);
    if (!session.destroyed) await closing(session);
    const client = new Client(server.address, credentials.createInsecure());
    const { error } = await callUnary(client, {}, new Metadata());
    assert.deepEqual([error?.code, error?.details], [3, NEEDS_TLS]);
    client.close();
  });

  it("ends a connection of HTTP/2 in plain text that makes no call", async () => {
    await using server = await startServer({ tls, firstBytesMs: 50 });
    const session = connectHttp2(`http://${server.address}`);
    session.on("error", () => {});
    await closing(session);
  });

  it("answers no probe in plain text", async () => {
    await using server = await startServer({ tls });
    assert.equal((await fetch(`http://${server.address}/healthz`)).status, 400);
  });

  for (const [what, hello] of [
    ["never continues", Buffer.of(0x16)],
    ["announces more than it sends", Buffer.of(0x16, 3, 1, 2, 0, 1, 0, 1)],
  ] as const) {
    it(`ends a handshake that ${what}`, async () => {
      await using server = await startServer({ tls, firstBytesMs: 50 });
      const { socket, closed } = rawConnection(server.port);
      socket.write(hello);
      await closed;
    });
  }

  it("ends a connection that says nothing after its handshake", async () => {
    await using server = await startServer({ tls, firstBytesMs: 200 });
    const socket = connect({ port: server.port, host: "127.0.0.1", ca: world.ca });
    socket.on("error", () => {});
    await closing(socket);
  });

  it("ends nonsense that begins like a handshake, and notes it", async () => {
    await using server = await startServer({ tls });
    const { socket, closed } = rawConnection(server.port);
    socket.write(Buffer.concat([Buffer.of(0x16, 3, 1, 0, 40), Buffer.alloc(64, 0xff)]));
    await closed;
    assert.equal(await get(`${server.url}/healthz`), 200);
  });

  it("counts unfinished handshakes as connections, and still answers probes", async () => {
    await using server = await startServer({ tls, maxConnections: 3 });
    const stalled = Array.from({ length: 3 }, () => connectTcp({ port: server.port, host: "127.0.0.1" }));
    await Promise.all(
      stalled.map(async (socket) => {
        await once(socket, "connect");
        socket.write(Buffer.of(0x16, 3, 1));
      }),
    );
    assert.equal(await get(`${server.url}/v1/x`), 429);
    assert.equal(await get(`${server.url}/healthz`), 200);
    for (const socket of stalled) socket.destroy();
    await expect.poll(() => get(`${server.url}/v1/x`)).toBe(200);
  });

  it("ends when its last encrypted connection does", async () => {
    const server = await startServer({ tls });
    const session = connectHttp2(server.url, { ca: world.ca });
    assert.equal(statusOf(await rawCall(session, EMPTY)), 0);
    const socket = await handshake(server.port);
    const idle = await handshake(server.port);
    idle.write(HEALTH.replace("close", "keep-alive"));
    await once(idle, "data");
    assert.equal(await server.close({ graceMs: 60_000 }), true);
    await Promise.all([closing(session), socket.destroyed || closing(socket)]);
  });

  it("resumes sessions", async () => {
    await using server = await startServer({ tls });
    const first = await handshake(server.port);
    const session = once(first, "session");
    await exchange(first);
    const again = await handshake(server.port, { session: (await session)[0] });
    assert.equal(again.isSessionReused(), true);
    assert.match(await exchange(again), /^HTTP\/1\.1 200 OK/);
  });
});

describe("a port that speaks plain text", () => {
  it("tells a client of TLS so, and logs it once", async () => {
    await using server = await startServer();
    for (let count = 0; count < 2; count++)
      await assert.rejects(handshake(server.port), /wrong version number/);
    const told = server.lines.filter(({ msg }) => /speaks TLS to this port/.test(String(msg)));
    assert.equal(told.length, 1);
    const { socket, received, closed } = rawConnection(server.port);
    socket.write(Buffer.of(0x16, 3, 1, 0, 5));
    await closed;
    assert.match(received(), /^HTTP\/1\.1 400 .*use http:\/\//s);
  });
});

describe("certificates of clients", () => {
  async function certificateOf(
    options: ConnectionOptions,
    http2 = false,
  ): Promise<ClientCertificate | undefined> {
    let seen: ClientCertificate | undefined;
    const service = fakeService({
      async unary(_method, _message, call) {
        seen = call.certificate;
        return create(DescribeTableResponseSchema);
      },
    });
    const { identity } = await world.open({ asksClients: true });
    await using server = await startServer({ tls: identity, service });
    if (http2) {
      const session = connectHttp2(server.url, { ca: world.ca, ...options });
      assert.equal(statusOf(await rawCall(session, EMPTY)), 0);
      session.close();
    } else {
      const path = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";
      const headers = { "content-type": "application/json" };
      const call = request(server.url + path, {
        method: "POST",
        ca: world.ca,
        agent: false,
        headers,
        ...options,
      });
      const [response] = await once(call.end("{}"), "response");
      response.resume();
      assert.equal(response.statusCode, 200);
    }
    identity.close();
    return seen;
  }
  const spiffe = { names: [{ kind: "URI", value: "spiffe://example.org/ns/etl/sa/loader" }] } as const;

  for (const http2 of [false, true]) {
    it(`reach the call over HTTP/${http2 ? "2" : "1.1"}`, async () => {
      const seen = await certificateOf(await world.sign(spiffe), http2);
      assert.equal(seen?.name, "spiffe://example.org/ns/etl/sa/loader");
      assert.equal(seen.fault, undefined);
      assert.match(seen.fingerprint, /^[0-9a-f]{64}$/);
      assert.ok(seen.expires > Date.now());
    });
  }

  it("are not required", async () => {
    assert.equal(await certificateOf({}), undefined);
  });

  it("have a fault if another authority has signed them, their time is over, or they are for servers", async () => {
    await using other = await makeTlsFiles();
    assert.match((await certificateOf(await other.sign(spiffe)))?.fault ?? "", /SIGNATURE|ISSUER/);
    const late = await world.sign({ ...spiffe, expires: new Date(Date.now() - 60_000) });
    assert.equal((await certificateOf(late))?.fault, "CERT_HAS_EXPIRED");
    const server = await world.sign({ ...spiffe, usage: "serverAuth" });
    assert.equal((await certificateOf(server))?.fault, "INVALID_PURPOSE");
    assert.equal(
      (await certificateOf(await world.sign({ ...spiffe, usage: "clientAuth" })))?.fault,
      undefined,
    );
  });
});
