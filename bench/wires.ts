// gRPC and REST on the gateway's one port, with the whole pipeline and an answer from memory, beside servers that
// do nothing else. Every server is a process of its own; the load comes from this one.
import { create, toBinary } from "@bufbuild/protobuf";
import { DescribeTableRequestSchema } from "../src/gen/lance/namespace/v1/table_pb.ts";
import { runGrpcLoad } from "./support/grpc-load.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { type ServerProcess, startServer } from "./support/process.ts";
import { compare, printStandings } from "./support/report.ts";
import { DESCRIBE_PATH } from "./wires/answer.ts";

const SECONDS = 3;
const ROUNDS = 3;

/** Runs the comparison of the wires; takes no options. */
export async function run(): Promise<void> {
  const servers = {
    gateway: await startServer("wires/gateway.ts"),
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
    const rest =
      ({ port }: ServerProcess) =>
      () =>
        runHttpLoad({
          port,
          method: "POST",
          path: "/v1/table/demo$events/describe",
          body: '{"id":["demo","events"]}',
          connections: 64,
          seconds: SECONDS,
        });

    printStandings(
      "gRPC describe, unary, 4 connections with 16 calls at once on each",
      "calls/s",
      await compare(ROUNDS, [
        { name: "gateway, whole pipeline", run: grpc(servers.gateway) },
        { name: "bare @grpc/grpc-js", run: grpc(servers.grpcJs) },
        { name: "connect-node over HTTP/2", run: grpc(servers.connectNode) },
      ]),
    );
    printStandings(
      "REST describe, 64 connections",
      "requests/s",
      await compare(ROUNDS, [
        { name: "gateway, whole pipeline", run: rest(servers.gateway) },
        { name: "bare Fastify route", run: rest(servers.fastify) },
      ]),
    );
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
}
