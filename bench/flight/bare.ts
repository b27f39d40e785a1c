// The least that a Flight server on Node does: it keeps the frames of the last DoPut, as they arrived, and sends them to every DoGet.
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  FlightDescriptor_DescriptorType,
  FlightInfoSchema,
  PutResultSchema,
} from "../../src/gen/arrow/flight/protocol/Flight_pb.ts";
import { encodeFrame } from "../../src/wires/grpc/frame.ts";

const MIB = 2 ** 20;

/** Size of a write, in bytes. */
const PIECE_BYTES = 2 * MIB;

let kept = Buffer.alloc(0);

/** Takes a table. */
async function put(stream: ServerHttp2Stream): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of stream.iterator({ destroyOnReturn: false })) pieces.push(piece);
  kept = Buffer.concat(pieces);
  stream.end(encodeFrame(toBinary(PutResultSchema, create(PutResultSchema)), false));
}

/** Sends it. */
async function get(stream: ServerHttp2Stream): Promise<void> {
  for (let at = 0; at < kept.length && !stream.destroyed; at += PIECE_BYTES) {
    const taken = Promise.withResolvers<void>();
    stream.write(kept.subarray(at, at + PIECE_BYTES), () => taken.resolve());
    await taken.promise;
  }
  stream.end();
}

function describe(stream: ServerHttp2Stream): void {
  const flightDescriptor = { type: FlightDescriptor_DescriptorType.PATH, path: ["rows"] };
  const endpoint = [{ ticket: { ticket: Buffer.from("rows") } }];
  const info = create(FlightInfoSchema, { flightDescriptor, endpoint });
  stream.end(encodeFrame(toBinary(FlightInfoSchema, info), false));
}

// The windows of the gateway, which hold several batches.
const server = createServer({ settings: { initialWindowSize: 8 * MIB } });
server.on("session", (session) => session.setLocalWindowSize(32 * MIB));
server.on("stream", (stream: ServerHttp2Stream, headers) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  const method = headers[":path"]?.split("/").at(-1);
  if (method === "DoPut") void put(stream);
  else if (method === "DoGet") void get(stream.resume());
  else describe(stream.resume());
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
