// Fixtures of this folder's tests: a server of its own, a stock client, and raw HTTP/2.
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, type Metadata, type ServiceError } from "@grpc/grpc-js";
import pino from "pino";
import { CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Service } from "../../namespace/service.ts";
import { serviceRpcs } from "../rpc.ts";
import { createGrpcHandler, type GrpcLimits } from "./handler.ts";

export const METHODS = LanceNamespaceService.method;

/** Returns a service for which each test defines only what it needs; it answers `{table: "t"}`. */
export function fakeService(parts: Partial<Service> = {}): Service {
  return {
    unary: async () => create(DescribeTableResponseSchema, { table: "t" }),
    async upload(_method, _request, data) {
      for await (const _ of data);
      return create(CreateTableResponseSchema, {});
    },
    async *download() {},
    ...parts,
  };
}

/** Returns a service whose calls begin, and end with an answer that names the table `only one` when the test says so. */
export function pausedService() {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const service = fakeService({
    async unary() {
      begin();
      await answered;
      return create(DescribeTableResponseSchema, { table: "only one" });
    },
  });
  return { service, begun, answer };
}

/** Returns a logger whose lines can be read. */
export function memoryLog() {
  const lines: Record<string, unknown>[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  return { log: pino({ level: "debug" }, sink), lines };
}

/** Starts the gRPC wire alone, on a port of its own. */
export async function startGrpc(service: Service, limits: GrpcLimits = {}) {
  const { log, lines } = memoryLog();
  const server = createServer({ settings: { initialWindowSize: 65_535 } });
  const answer = createGrpcHandler({ rpcs: serviceRpcs(LanceNamespaceService, service), log, ...limits });
  server.on("stream", (stream: ServerHttp2Stream, headers) => answer(stream, headers));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new Client(address, credentials.createInsecure());
  const session = connect(`http://${address}`);
  session.on("error", () => {});
  return {
    address,
    client,
    session,
    lines,
    async [Symbol.asyncDispose]() {
      client.close();
      session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function pathOfMethod(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Returns the serializers of a method, as grpc-js takes them. */
export function codecs(method: DescMethod) {
  return [
    pathOfMethod(method),
    (message: Message) => Buffer.from(toBinary(method.input, message)),
    (bytes: Buffer) => fromBinary(method.output, bytes) as Message & Record<string, unknown>,
  ] as const;
}

export interface Answered {
  error: ServiceError | null;
  response: (Message & Record<string, unknown>) | undefined;
  metadata: Metadata | undefined;
}

/** Makes a unary call with the stock client; `init` is the request. */
export function callUnary(
  client: Client,
  init: Record<string, unknown>,
  metadata: Metadata,
  options: object = {},
  method: DescMethod = METHODS.describeTable,
): Promise<Answered> {
  return new Promise((resolve) => {
    let initial: Metadata | undefined;
    const request = create(method.input, init) as Message;
    client
      .makeUnaryRequest(...codecs(method), request, metadata, options, (error, response) =>
        resolve({ error, response, metadata: initial }),
      )
      .on("metadata", (received) => {
        initial = received;
      });
  });
}

export interface RawAnswer {
  headers: IncomingHttpHeaders;
  trailers: IncomingHttpHeaders;
  body: Buffer;
  rstCode: number;
}

/** Makes a request in raw HTTP/2; the answer's `status` is in the trailers, or in the headers without trailers. */
export function rawCall(
  session: ClientHttp2Session,
  body: Buffer | undefined,
  headers: Record<string, string | undefined> = {},
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const answer: RawAnswer = { headers: {}, trailers: {}, body: Buffer.alloc(0), rstCode: 0 };
    const stream = session.request({
      ":method": "POST",
      ":path": pathOfMethod(METHODS.describeTable),
      "content-type": "application/grpc",
      ...headers,
    });
    stream.on("response", (received) => {
      answer.headers = received;
    });
    stream.on("trailers", (received) => {
      answer.trailers = received;
    });
    stream.on("data", (piece: Buffer) => {
      answer.body = Buffer.concat([answer.body, piece]);
    });
    stream.on("error", () => {});
    stream.on("close", () => resolve({ ...answer, rstCode: stream.rstCode }));
    stream.end(body);
  });
}

/** Returns the gRPC status of a raw answer. */
export function statusOf({ headers, trailers }: RawAnswer): number {
  return Number(trailers["grpc-status"] ?? headers["grpc-status"]);
}
