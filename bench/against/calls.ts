import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CountTableRowsRequestSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import {
  DescribeTableRequestSchema,
  ListTablesRequestSchema,
  TableExistsRequestSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { createGrpcClient } from "../../test/support/grpc-client.ts";
import { send } from "../data/client.ts";
import { columns } from "../loop/bodies.ts";
import { runGrpcLoad } from "../support/grpc-load.ts";
import { runLightLoad } from "../support/light-load.ts";

/** A load on the gateway of a port. */
export interface Load {
  /** Puts a part of the load on the port; returns the number of its calls. */
  readonly run: (port: number) => Promise<number>;
  /** Calls before the measured ones, in which V8 compiles. They are counted, because a busy machine makes few in a second. */
  readonly warm: number;
  /** Minimum calls of a turn. */
  readonly turn: number;
}

const SECONDS = 0.25;
/** Calls of a read before its turns, and before those of a wire's first read, which compiles what all its calls share. */
const WARM_READS = 5000;
const WARM_FIRST_READS = 40_000;
const READS = 4000;
const CONNECTIONS = 16;
/** Declarations of a load. Each makes the catalog larger, so their number is fixed. */
const DECLARATIONS = 320;
const TABLES = 200;
const ROWS = 1000;

const NAMES = Array.from({ length: TABLES }, (_, number) => `t${number}`);

/** Declares the tables of the loads, and creates the one whose rows are counted. */
export async function prepareCatalog(port: number): Promise<void> {
  await send(port, "namespace/bench/create", {});
  await send(port, "table/bench$rows/create", Buffer.from(columns(2, ROWS)));
  for (const name of NAMES) await send(port, `table/bench$${name}/declare`, {});
}

/** The measured calls of a gateway in front of a directory, by their titles. */
export const DIRECTORY_LOADS: Readonly<Record<string, Load>> = {
  "describe, REST": first(rest(NAMES.map((name) => `table/bench$${name}/describe`))),
  "describe, gRPC": first(grpc("DescribeTable", DescribeTableRequestSchema, { id: ["bench", "t7"] })),
  "exists, REST": rest(NAMES.map((name) => `table/bench$${name}/exists`)),
  "exists, gRPC": grpc("TableExists", TableExistsRequestSchema, { id: ["bench", "t7"] }),
  "list 100 of 200, REST": rest(["namespace/bench/table/list?limit=100"], "GET"),
  "list 100 of 200, gRPC": grpc("ListTables", ListTablesRequestSchema, { id: ["bench"], limit: 100 }),
  "count rows, REST": rest(["table/bench$rows/count_rows"]),
  "count rows, gRPC": grpc("CountTableRows", CountTableRowsRequestSchema, { id: ["bench", "rows"] }),
  "declare, REST": declarations((port, work) =>
    work((name) => send(port, `table/bench$${name}/declare`, {})),
  ),
  "declare, gRPC": declarations(async (port, work) => {
    const { client, close } = createGrpcClient(port);
    try {
      await work((name) => client.declareTable({ id: ["bench", name] }));
    } finally {
      close();
    }
  }),
};

/** A describe over REST, which a gateway passes on to an upstream. */
export const DESCRIBE_BY_REST = first(rest(["table/demo$events/describe"]));

/** A describe over gRPC, which a gateway passes on to an upstream. */
export const DESCRIBE_BY_GRPC = first(
  grpc("DescribeTable", DescribeTableRequestSchema, { id: ["demo", "events"] }),
);

function first(load: Load): Load {
  return { ...load, warm: WARM_FIRST_READS };
}

function rest(paths: readonly string[], method: "GET" | "POST" = "POST"): Load {
  const load = { method, paths: paths.map((path) => `/v1/${path}`), body: "{}", connections: CONNECTIONS };
  return reads((port) => runLightLoad({ ...load, port, seconds: SECONDS }));
}

function grpc<D extends DescMessage>(method: string, schema: D, request: MessageInitShape<D>): Load {
  const path = `/lance.namespace.v1.LanceNamespaceService/${method}`;
  const load = { path, message: toBinary(schema, create(schema, request)), concurrency: 4, connections: 4 };
  return reads((port) => runGrpcLoad({ ...load, port, seconds: SECONDS }));
}

function reads(rateOf: (port: number) => Promise<number>): Load {
  const run = async (port: number) => {
    const started = performance.now();
    const rate = await rateOf(port);
    return (rate * (performance.now() - started)) / 1000;
  };
  return { run, warm: WARM_READS, turn: READS };
}

let declared = 0;

/** Returns a load of declarations with new names, which a client makes one by one. */
function declarations(
  connect: (
    port: number,
    work: (declare: (name: string) => Promise<unknown>) => Promise<void>,
  ) => Promise<void>,
): Load {
  const run = async (port: number) => {
    const last = declared + DECLARATIONS;
    await connect(port, async (declare) => {
      const callers = Array.from({ length: CONNECTIONS }, async () => {
        while (declared < last) await declare(`new${declared++}`);
      });
      await Promise.all(callers);
    });
    return DECLARATIONS;
  };
  return { run, warm: 2 * DECLARATIONS, turn: DECLARATIONS };
}
