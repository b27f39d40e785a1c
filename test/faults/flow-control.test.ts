import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { CreateTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { cut, wideStream } from "../support/arrow.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { delayed, startProxy } from "../support/proxy.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const MIB = 1024 * 1024;

const backend = fakeBackend({
  async createTable(_, data) {
    let bytes = 0;
    for await (const piece of data) bytes += piece.length;
    return create(CreateTableResponseSchema, { version: BigInt(bytes) });
  },
});

describe("flow control of HTTP/2", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(backend);
  });
  afterAll(() => server.close());

  test("the windows of a stream and of the session let large bodies flow", async () => {
    const session = connect(`http://127.0.0.1:${server.port}`);
    const [settings] = await once(session, "remoteSettings");
    assert.ok(settings.initialWindowSize >= MIB, `stream window ${settings.initialWindowSize}`);
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    const { remoteWindowSize = 0 } = session.state;
    assert.ok(remoteWindowSize >= MIB, `session window ${remoteWindowSize}`);
    session.destroy();
  });

  test("30 MB arrive over a link with a delay of 20 ms and more than a MiB in flight", async () => {
    const there = delayed(20);
    const proxy = await startProxy(server.port, there.relay, delayed(20).relay);
    const { client, close } = createGrpcClient(proxy.port);
    const body = wideStream(30_000_000);
    const { version } = await client.createTable({ id: ["t"] }, cut(body, MIB));
    assert.equal(Number(version), body.length);
    assert.ok(there.mostUnderWay() > MIB, `${there.mostUnderWay()} bytes were in flight at most`);
    close();
    proxy.close();
  });
});
