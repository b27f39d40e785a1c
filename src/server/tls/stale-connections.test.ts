import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";
import { makeTlsFiles } from "../../../test/fixtures/server/tls.ts";
import { fakeService, rawCall, statusOf } from "../../../test/fixtures/wires/grpc.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { peerOf } from "../../wires/arrival.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";
import type { HttpHandler } from "../port/listener.ts";

const EMPTY = encodeFrame(new Uint8Array(0), false);
const GET = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

/** Starts a server that asks for certificates, whose calls wait for `finish()`. */
async function startWorld(rest?: HttpHandler) {
  const world = await makeTlsFiles();
  const other = await makeTlsFiles();
  const { identity } = await world.open({ asksClients: true });
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const faults: (string | undefined)[] = [];
  const service = fakeService({
    async unary(_method, _message, call) {
      faults.push(call.certificate?.fault);
      await finished;
      return create(DescribeTableResponseSchema);
    },
  });
  const server = await startServer({ tls: identity, service, ...(rest && { rest }) });
  onTestFinished(async () => {
    identity.close();
    await server[Symbol.asyncDispose]();
    await Promise.all([world[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
  });
  const mine = { ca: world.ca, ...(await world.sign()) };
  const open = async () => {
    const socket = connect({ port: server.port, host: "127.0.0.1", ...mine });
    const seen = { text: "" };
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      seen.text += piece;
    });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await once(socket, "secureConnect");
    return { socket, seen, closed };
  };
  /** Removes the authority of the clients. */
  const removeAuthority = () => writeFile(world.files.clientAuthorities, other.ca);
  return { world, identity, server, mine, faults, finish, open, removeAuthority };
}

describe("a change of the authorities of clients", () => {
  it("ends HTTP/2 connections after their running calls, and refuses the certificate on later ones", async () => {
    const { server, mine, faults, finish, removeAuthority } = await startWorld();
    const session = connectHttp2(server.url, mine);
    session.on("error", () => {});
    const running = rawCall(session, EMPTY);
    await expect.poll(() => faults).toEqual([undefined]);
    const told = once(session, "goaway");
    const closed = once(session, "close");
    await removeAuthority();
    await told;
    finish();
    assert.equal(statusOf(await running), 0);
    await closed;
    const next = connectHttp2(server.url, mine);
    assert.equal(statusOf(await rawCall(next, EMPTY)), 0);
    assert.match(faults[1] ?? "", /SIGNATURE|ISSUER/);
    next.close();
  });

  it("closes idle connections of HTTP/1.1, and those that have sent nothing", async () => {
    const { open, removeAuthority } = await startWorld();
    const [idle, silent] = [await open(), await open()];
    idle.socket.write(GET("/healthz"));
    await expect.poll(() => idle.seen.text).toMatch(/^HTTP\/1\.1 200/);
    await removeAuthority();
    await Promise.all([idle.closed, silent.closed]);
    assert.equal(silent.seen.text, "");
  });

  it("closes busy connections of HTTP/1.1 with their answers", async () => {
    let answer: (() => void) | undefined;
    const { identity, open, removeAuthority } = await startWorld((_request, response) => {
      answer = () => response.end("done");
    });
    const { socket, seen, closed } = await open();
    socket.write(GET("/v1/x"));
    await expect.poll(() => answer).toBeDefined();
    const changed = new Promise<void>((resolve) => identity.onChange(() => resolve()));
    await removeAuthority();
    await changed;
    answer?.();
    await closed;
    assert.match(seen.text, /connection: close.*done$/is);
  });

  it("refuses the certificate for requests behind a long answer, and closes the connection with it", async () => {
    let end: (() => void) | undefined;
    let faultNow: (() => string | undefined) | undefined;
    const { open, removeAuthority } = await startWorld((request, response) => {
      faultNow = () => peerOf(request.socket).certificate?.fault;
      response.write("begun");
      end = () => response.end("done");
    });
    const { socket, seen, closed } = await open();
    socket.write(GET("/v1/x"));
    await expect.poll(() => seen.text).toMatch(/begun/);
    await removeAuthority();
    await expect.poll(() => faultNow?.()).toMatch(/connect again/);
    end?.();
    await closed;
    assert.match(seen.text, /done/);
  });

  it("is not a new certificate of the server, which ends no connection", async () => {
    const { world, identity, open } = await startWorld();
    const { socket, seen } = await open();
    const changed = new Promise<void>((resolve) => identity.onChange(() => resolve()));
    await world.renew({ commonName: "renewed" });
    await changed;
    socket.write(GET("/healthz"));
    await expect.poll(() => seen.text).toMatch(/^HTTP\/1\.1 200/);
    socket.destroy();
  });
});
