// A server under test of the Connect conformance suite: the gateway's wires with the suite's own service.
//
// node server.ts DESCRIPTORS: reads what the suite asks for from standard input, and answers on standard output.
import { readFileSync } from "node:fs";
import { create, createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import pino from "pino";
import { DEFAULT_MAX_MESSAGE_BYTES } from "../../../src/namespace/memory/byte-budget.ts";
import { createLoopPace } from "../../../src/runtime/loop-pace.ts";
import { createApp } from "../../../src/server/app/app.ts";
import { createHostCheck } from "../../../src/server/app/browser-guard.ts";
import { createReadiness } from "../../../src/server/app/probes.ts";
import { createListener } from "../../../src/server/port/listener.ts";
import { createArrivalPace } from "../../../src/server/requests/arrival-pace.ts";
import { createGrpcHandler } from "../../../src/wires/grpc/handler.ts";
import { conformanceRpcs, detailsOf } from "./service.ts";

const [, , descriptors = ""] = process.argv;
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const described = (name: string) => registry.getMessage(`connectrpc.conformance.v1.${name}`) as DescMessage;

const asked = fromBinary(described("ServerCompatRequest"), await readMessage());
const { messageReceiveLimit } = asked as unknown as { messageReceiveLimit: number };
const log = pino({ level: "silent" });
const shared = {
  rpcs: conformanceRpcs(registry),
  log,
  errorDetails: detailsOf,
  maxMessageBytes: messageReceiveLimit || DEFAULT_MAX_MESSAGE_BYTES,
};
const app = createApp({
  ...shared,
  registry,
  // The suite has no REST.
  transcoders: [],
  service: undefined as never,
  readiness: createReadiness(),
  hosts: createHostCheck(["*"]),
  origins: [],
});
await app.fastify.ready();
const http = app.answer;
const pace = createArrivalPace(createLoopPace(), createLoopPace());
const wires = { grpc: createGrpcHandler(shared), http, crowded: http, refuse: http };
const listener = createListener({ ...wires, pace, log });
const { port } = await listener.listen({ host: "127.0.0.1", port: 0 });
const answer = toBinary(
  described("ServerCompatResponse"),
  create(described("ServerCompatResponse"), { host: "127.0.0.1", port }),
);
const size = Buffer.alloc(4);
size.writeUInt32BE(answer.length);
process.stdout.write(Buffer.concat([size, answer]));
process.once("SIGTERM", () => void listener.close(0));

/** A message after its length; the runner does not end the input. */
async function readMessage(): Promise<Uint8Array> {
  let read = Buffer.alloc(0);
  for await (const piece of process.stdin) {
    read = Buffer.concat([read, piece as Buffer]);
    if (read.length >= 4 && read.length >= 4 + read.readUInt32BE()) break;
  }
  return read.subarray(4);
}
