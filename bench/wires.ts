// Compares gRPC and REST on the gateway's single port, with the whole pipeline and an answer from memory, with bare
// servers. Each server is a process of its own; this process generates the load.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { DescribeTableRequestSchema } from "../src/gen/lance/namespace/v1/table_pb.ts";
import { compare } from "./support/compare.ts";
import { addContest, type Figures, startFigures } from "./support/figures.ts";
import { runGrpcLoad } from "./support/grpc-load.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { type ServerProcess, startServer } from "./support/process.ts";
import { DESCRIBE_PATH } from "./wires/answer.ts";

const REQUEST = '{"id":["demo","events"]}';
const MESSAGE = toBinary(
  DescribeTableRequestSchema,
  create(DescribeTableRequestSchema, { id: ["demo", "events"] }),
);

/** The least multiple of another server's calls that the gateway is to serve. */
const LEAST = { "bare @grpc/grpc-js": 1.5 };

const OPTIONS = {
  /** The directory of another checkout of this project, whose gateway also takes part. */
  base: { type: "string" },
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "3" },
} as const;

/** Runs the comparison of the wires: `[--base DIRECTORY] [--rounds NUMBER] [--seconds NUMBER]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const seconds = Number(values.seconds);
  const gateway = await startServer("wires/gateway.ts");
  const own = {
    gateway,
    ...(values.base !== undefined && {
      "gateway of the base": await startServer(resolve(values.base, "bench/wires/gateway.ts")),
    }),
  };
  const grpcServers = {
    ...own,
    "bare @grpc/grpc-js": await startServer("wires/grpc-js.ts"),
    "connect-node over HTTP/2": await startServer("wires/connect-node.ts"),
  };
  const restServers = { ...own, "bare Fastify route": await startServer("wires/fastify.ts") };
  const post = (port: number, path: string) =>
    runHttpLoad({ port, method: "POST", path, body: REQUEST, connections: 64, seconds });
  const grpc = (port: number) =>
    runGrpcLoad({ port, path: DESCRIBE_PATH, message: MESSAGE, concurrency: 16, connections: 4, seconds });
  const figures = startFigures("describe", "calls/s", "the gateway is, ×");
  const contest = async (
    title: string,
    servers: Readonly<Record<string, ServerProcess>>,
    load: (port: number) => Promise<number>,
  ) => {
    const sides = Object.entries(servers).map(([name, { port }]) => [name, () => load(port)]);
    addContest(figures, title, await compare(Number(values.rounds), Object.fromEntries(sides)), LEAST);
  };
  try {
    await contest("gRPC, 4 connections with 16 calls at once", grpcServers, grpc);
    await contest("REST, 64 connections", restServers, (port) =>
      post(port, "/v1/table/demo$events/describe"),
    );
    await contest("Connect in JSON over HTTP/1.1, 64 connections", own, (port) => post(port, DESCRIBE_PATH));
    return [figures];
  } finally {
    const all = new Set<ServerProcess>([...Object.values(grpcServers), ...Object.values(restServers)]);
    await Promise.all([...all].map((server) => server.stop()));
  }
}
