// Measures the cost in this process of a call to a gRPC upstream with each available client. The upstream is the
// gateway with an answer from memory, in its own process.
import { connect } from "node:http2";
import { create, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Client, credentials } from "@grpc/grpc-js";
import { definitionOf } from "../src/backends/grpc/channel/channels.ts";
import { LanceNamespaceService } from "../src/gen/lance/namespace/v1/service_pb.ts";
import { startServer } from "./support/process.ts";
import { DESCRIBE_PATH } from "./wires/answer.ts";

const SECONDS = 3;
const ROUNDS = 3;
const CONCURRENCY = 64;
const FRAME_HEAD_BYTES = 5;

const method = LanceNamespaceService.method.describeTable;
const request = create(method.input, { id: ["demo", "events"] });
type Answer = MessageShape<typeof method.output>;

/** Each function opens a client and returns a function that makes one call. */
const clients: Readonly<Record<string, (port: number) => () => Promise<Answer>>> = {
  "@grpc/grpc-js": (port) => {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    return () =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, answer) =>
          error ? reject(error) : resolve(answer as Answer),
        );
      });
  },

  "connect-node": (port) => {
    const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` });
    return async () => (await transport.unary(method, undefined, undefined, undefined, request)).message;
  },

  "bare node:http2": (port) => {
    const session = connect(`http://127.0.0.1:${port}`).on("error", () => {});
    const headers = {
      ":method": "POST",
      ":path": DESCRIBE_PATH,
      "content-type": "application/grpc",
      te: "trailers",
    };
    return () =>
      new Promise((resolve, reject) => {
        const stream = session.request(headers);
        const parts: Buffer[] = [];
        stream.on("data", (part: Buffer) => parts.push(part));
        stream.on("error", reject);
        stream.on("end", () =>
          resolve(fromBinary(method.output, Buffer.concat(parts).subarray(FRAME_HEAD_BYTES))),
        );
        const body = toBinary(method.input, request);
        const head = Buffer.alloc(FRAME_HEAD_BYTES);
        head.writeUInt32BE(body.length, 1);
        stream.end(Buffer.concat([head, body]));
      });
  },
};

/** Runs the comparison; takes no options. */
export async function run(): Promise<void> {
  const server = await startServer("wires/gateway.ts");
  try {
    const opened = Object.entries(clients).map(([name, open]) => ({ name, call: open(server.port) }));
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (const { name, call } of opened) {
        const { rate, cpu } = await load(call);
        console.log(
          `round ${round}  ${name.padEnd(16)} ${rate.toFixed(0).padStart(6)} calls/s  ${cpu.toFixed(0)} µs of CPU a call`,
        );
      }
    }
  } finally {
    await server.stop();
  }
  // The clients' connections would keep the process alive.
  process.exit(0);
}

async function load(call: () => Promise<Answer>): Promise<{ rate: number; cpu: number }> {
  let calls = 0;
  const started = performance.now();
  const before = process.cpuUsage();
  const end = started + SECONDS * 1000;
  const worker = async () => {
    for (; performance.now() < end; calls += 1) await call();
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  const { user, system } = process.cpuUsage(before);
  return { rate: calls / ((performance.now() - started) / 1000), cpu: (user + system) / calls };
}
