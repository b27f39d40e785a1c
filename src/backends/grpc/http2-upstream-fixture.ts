import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import type { TestContext } from "vitest";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { log } from "./fixture.ts";
import { createGrpcBackend, type GrpcBackendOptions } from "./index.ts";

/** Answers a stream whose request is complete. */
export type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

export const TABLE = toBinary(
  DescribeTableResponseSchema,
  create(DescribeTableResponseSchema, { table: "t" }),
);

/** A message that is not packed. */
export const plain = { flag: 0, data: TABLE };

/** Opens a backend in front of an upstream of raw HTTP/2. */
export async function upstreamOf(
  t: TestContext,
  answer: Answer,
  options: Partial<GrpcBackendOptions> = {},
  { path, ...server }: ServerOptions & { readonly path?: string } = {},
) {
  const upstream = createServer(server);
  t.onTestFinished(() => void upstream.close());
  upstream.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => {});
    stream.on("end", () => answer(stream, headers)).resume();
  });
  if (path === undefined) upstream.listen(0, "127.0.0.1");
  else upstream.listen(path);
  await once(upstream, "listening");
  const address =
    path === undefined ? `127.0.0.1:${(upstream.address() as AddressInfo).port}` : `unix:${path}`;
  const backend = await createGrpcBackend({
    addresses: [address],
    resilience: { retries: 0 },
    log,
    ...options,
  });
  t.onTestFinished(() => backend.close());
  return { backend, address, upstream };
}

/** Answers with messages, the first byte of each in its frame being a flag, and a success. */
export function answerWith(
  messages: readonly { flag: number; data: Uint8Array }[],
  encoding?: string,
): Answer {
  return (stream) => {
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.respond(
      { ":status": 200, "content-type": "application/grpc", ...(encoding && { "grpc-encoding": encoding }) },
      { waitForTrailers: true },
    );
    for (const { flag, data } of messages) {
      const head = Buffer.from([flag, 0, 0, 0, 0]);
      head.writeUInt32BE(data.length, 1);
      stream.write(Buffer.concat([head, data]));
    }
    stream.end();
  };
}
