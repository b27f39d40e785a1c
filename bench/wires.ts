// Compares gRPC and REST on the gateway's single port, with the whole pipeline and an answer from memory, with bare
// servers. Each server is a process of its own; this process generates the load.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { DescribeTableRequestSchema } from "../src/gen/lance/namespace/v1/table_pb.ts";
import { runGrpcLoad } from "./support/grpc-load.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { type ServerProcess, startServer } from "./support/process.ts";
import { compare, printStandings } from "./support/report.ts";
import { DESCRIBE_PATH } from "./wires/answer.ts";

const SECONDS = 3;

const REQUEST = '{"id":["demo","events"]}';

const OPTIONS = {
  /** The directory of another checkout of this project, whose gateway also takes part. */
  base: { type: "string" },
  rounds: { type: "string", default: "3" },
} as const;

/** Runs the comparison of the wires: `[--base DIRECTORY] [--rounds NUMBER]`. */
export async function run(args: readonly string[]): Promise<void> {
  const { base, rounds } = parseArgs({ args: [...args], options: OPTIONS }).values;
  const servers = {
    gateway: await startServer("wires/gateway.ts"),
    ...(base !== undefined && { base: await startServer(resolve(base, "bench/wires/gateway.ts")) }),
    grpcJs: await startServer("wires/grpc-js.ts"),
    connectNode: await startServer("wires/connect-node.ts"),
    fastify: await startServer("wires/fastify.ts"),
  };
  try {
    const message = toBinary(
      DescribeTableRequestSchema,
      create(DescribeTableRequestSchema, { id: ["demo", "events"] }),
    );
    const grpc =
      ({ port }: ServerProcess) =>
      () =>
        runGrpcLoad({
          port,
          path: DESCRIBE_PATH,
          message,
          concurrency: 64,
          connections: 4,
          seconds: SECONDS,
        });
    const baseline = (load: (server: ServerProcess) => () => Promise<number>) =>
      servers.base === undefined ? [] : [{ name: "gateway of the base", run: load(servers.base) }];
    const connect =
      ({ port }: ServerProcess) =>
      () =>
        runHttpLoad({
          port,
          method: "POST",
          path: DESCRIBE_PATH,
          body: REQUEST,
          connections: 64,
          seconds: SECONDS,
        });
    const rest =
      ({ port }: ServerProcess) =>
      () =>
        runHttpLoad({
          port,
          method: "POST",
          path: "/v1/table/demo$events/describe",
          body: REQUEST,
          connections: 64,
          seconds: SECONDS,
        });

    printStandings(
      "gRPC describe, unary, 4 connections with 16 calls at once on each",
      "calls/s",
      await compare(Number(rounds), [
        { name: "gateway, whole pipeline", run: grpc(servers.gateway) },
        ...baseline(grpc),
        { name: "bare @grpc/grpc-js", run: grpc(servers.grpcJs) },
        { name: "connect-node over HTTP/2", run: grpc(servers.connectNode) },
      ]),
    );
    printStandings(
      "REST describe, 64 connections",
      "requests/s",
      await compare(Number(rounds), [
        { name: "gateway, whole pipeline", run: rest(servers.gateway) },
        ...baseline(rest),
        { name: "bare Fastify route", run: rest(servers.fastify) },
      ]),
    );
    printStandings(
      "Connect describe in JSON over HTTP/1.1, 64 connections",
      "requests/s",
      await compare(Number(rounds), [
        { name: "gateway, whole pipeline", run: connect(servers.gateway) },
        ...baseline(connect),
      ]),
    );
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
}
