import assert from "node:assert/strict";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { type ChannelOptions, Client, credentials, experimental } from "@grpc/grpc-js";
import { onTestFinished, test } from "vitest";
import { type Connection, callMakerOf, countPieces, unreadBytesOf } from "./grpc-connection.ts";

/** Length of the message with which the server answers, and with its frame. */
const MESSAGE_BYTES = 1_000;
const FRAME_BYTES = MESSAGE_BYTES + 5;

const POLICY = "watched_pick_first";
const watched: { connection?: Connection } = {};

/** Uses the first server, and keeps its connection. */
class Watching extends experimental.ChildLoadBalancerHandler {
  constructor(helper: experimental.ChannelControlHelper) {
    const createSubchannel: typeof helper.createSubchannel = (address, options) => {
      watched.connection = helper.createSubchannel(address, options);
      return watched.connection;
    };
    super(experimental.createChildChannelControlHelper(helper, { createSubchannel }));
  }

  override updateAddressList(
    endpoints: experimental.StatusOr<experimental.Endpoint[]>,
    _config: experimental.TypedLoadBalancingConfig,
    options: ChannelOptions,
    note: string,
  ): boolean {
    const first = experimental.selectLbConfigFromList([{ pick_first: {} }]);
    assert.ok(first);
    return super.updateAddressList(endpoints, first, options, note);
  }

  override getTypeName(): string {
    return POLICY;
  }
}

class WatchingConfig implements experimental.TypedLoadBalancingConfig {
  static createFromJson = () => new WatchingConfig();
  getLoadBalancerName = () => POLICY;
  toJsonObject = () => ({ [POLICY]: {} });
}

test("getRealSubchannel makes the calls of a connection, whose decoder and http2Stream show what arrives", async () => {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    const frame = Buffer.alloc(FRAME_BYTES);
    frame.writeUInt32BE(MESSAGE_BYTES, 1);
    stream.resume().end(frame);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  experimental.registerLoadBalancerType(POLICY, Watching, WatchingConfig);
  const { port } = server.address() as AddressInfo;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ [POLICY]: {} }] }),
  });
  onTestFinished(() => {
    client.close();
    server.close();
  });
  const same = (bytes: Buffer) => bytes;
  const ask = () =>
    new Promise<Buffer | undefined>((resolve, reject) => {
      const request = Buffer.alloc(0);
      client.makeUnaryRequest("/a/b", same, same, request, (error, message) =>
        error === null ? resolve(message) : reject(error),
      );
    });
  await ask();
  assert.ok(watched.connection);
  const maker = callMakerOf(watched.connection);
  const make = maker.createCall.bind(maker);
  let bytes = 0;
  let calls = 0;
  maker.createCall = (...call) => {
    const made = make(...call);
    calls += 1;
    assert.ok("http2Stream" in made);
    assert.equal(unreadBytesOf(made), 0);
    countPieces(made, (more) => {
      bytes += more;
    });
    return made;
  };
  assert.equal((await ask())?.length, MESSAGE_BYTES);
  assert.deepEqual({ calls, bytes }, { calls: 1, bytes: FRAME_BYTES });
});
