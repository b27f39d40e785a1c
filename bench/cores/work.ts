import { create, toBinary } from "@bufbuild/protobuf";
import { DescribeTableRequestSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { callOnce, GRPC_HEADERS, type GrpcCall, messageFrame } from "../support/grpc-answer.ts";
import { type H2LoadResult, runH2load } from "../support/h2load.ts";
import { runLightLoad } from "../support/light-load.ts";

/** Number of tables of the prepared catalogs, in the namespace `bench`. */
export const TABLES = 1_000;

export const CONNECTIONS = 32;
/** Connections of gRPC, and calls at the same time on each of them: its clients make many calls on few connections. */
const [GRPC_CONNECTIONS, STREAMS] = [16, 8];
/** Connections on which tables are declared. */
const DECLARERS = 64;

/** Puts load on a port for some seconds. */
export type Work = (port: number, seconds: number) => Promise<Pick<H2LoadResult, "rate" | "answers">>;

/** The compared loads, by their titles. */
export const WORK: Readonly<Record<string, Work>> = {
  "describe, REST": rest("POST", tablePath("describe")),
  "exists, REST": rest("POST", tablePath("exists")),
  "list a page of 100, REST": rest("GET", (number) => {
    return `/v1/namespace/bench/table/list?limit=100&page_token=t${number * 3}`;
  }),
  "count rows, REST": rest("POST", () => "/v1/table/rows/count_rows"),
  "declare, REST": declareTables,
  "describe, gRPC": describeOverGrpc,
};

function tablePath(operation: string): (number: number) => string {
  return (number) => `/v1/table/bench$t${number % TABLES}/${operation}`;
}

function rest(method: "GET" | "POST", path: (number: number) => string): Work {
  const paths = Array.from({ length: 199 }, (_, number) => path(number));
  return (port, seconds) =>
    runH2load({
      ...{ port, method, paths, seconds, protocol: "HTTP/1.1" },
      ...{ connections: CONNECTIONS, concurrency: 1, body: Buffer.from("{}") },
      headers: { "content-type": "application/json" },
    });
}

/** Names for a second of declares, more than a gateway can use up. */
const DECLARES_PER_SECOND = 20_000;
let declared = 0;

/** h2load requests each path on every connection, and a table can be declared a single time. */
async function declareTables(port: number, seconds: number): ReturnType<Work> {
  const path = () => `/v1/table/bench$new${declared++}/declare`;
  const paths = Array.from({ length: DECLARES_PER_SECOND * seconds }, path);
  const started = performance.now();
  const connections = DECLARERS;
  const rate = await runLightLoad({ port, method: "POST", paths, body: "{}", connections, seconds });
  return { rate, answers: (rate * (performance.now() - started)) / 1000 };
}

const DESCRIBE = {
  path: "/lance.namespace.v1.LanceNamespaceService/DescribeTable",
  message: toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id: ["bench", "t7"] })),
};

/** h2load sees the status of HTTP alone, so the bytes of all answers must be those of a call that succeeds. */
async function describeOverGrpc(port: number, seconds: number): ReturnType<Work> {
  const call: GrpcCall = { port, ...DESCRIBE };
  const answer = await callOnce(call);
  const result = await runH2load({
    ...{ port, method: "POST", paths: [call.path], seconds, protocol: "HTTP/2" },
    ...{
      connections: GRPC_CONNECTIONS,
      concurrency: STREAMS,
      body: messageFrame(call.message),
    },
    headers: GRPC_HEADERS,
  });
  const after = await callOnce(call);
  const { answers, bodyBytes } = result;
  if (!after.equals(answer) || bodyBytes < answers * answer.length)
    throw new Error(`${answers} answers have ${bodyBytes} bytes instead of ${answer.length} each`);
  return result;
}
