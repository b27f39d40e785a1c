import { setTimeout as sleep } from "node:timers/promises";
import { Field, Int32, Schema, Table, tableToIPC } from "apache-arrow";
import { MaterializedViewKind } from "../../src/gen/lance/namespace/v1/view_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";
import type { Scenario } from "./scenario.ts";
import { fresh } from "./tables.ts";

/** Replaces the random id in an answer by the fact that it is there. */
const seen = ({ jobId, ...answer }: { jobId?: string }) => ({ ...answer, jobId: (jobId ?? "") !== "" });

async function counted(
  client: LanceClient,
  id: string[],
  predicate: string,
  wanted: bigint,
): Promise<bigint> {
  for (let look = 0; look < 500; look++) {
    const { count } = await client.countTableRows({ id, predicate });
    if (count === wanted) return count;
    await sleep(10);
  }
  throw new Error(`there are never ${wanted} rows with ${predicate}`);
}

const ID = Buffer.from(tableToIPC(new Table(new Schema([new Field("id", new Int32(), false)])), "stream"));
const view = (ns: string, name: string, source: string) => ({
  id: [ns, name],
  kind: MaterializedViewKind.QUERY,
  sourceQuery: `SELECT id FROM ${ns}.${source} WHERE name <> ''`,
  outputSchema: ID.toString("base64"),
});

/** Operations that jobs carry out: backfill and materialized views. */
export const JOB_SCENARIOS: readonly Scenario[] = [
  {
    operation: "alterTableBackfillColumns",
    name: "of a computed column",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "filled");
      await client.alterTableAddColumns({ id, newColumns: [{ name: "twice", computed: "id * 2" }] });
      const answer = await client.alterTableBackfillColumns({ id, column: "twice" });
      return [seen(answer), await counted(client, id, "twice = id * 2", 5n)];
    },
  },
  {
    operation: "alterTableBackfillColumns",
    name: "of a column without an expression",
    fails: "InvalidInput",
    run: (client, ns) => client.alterTableBackfillColumns({ id: [ns, "t"], column: "name" }),
  },
  {
    operation: "createMaterializedView",
    name: "with its first rows",
    run: async (client, ns) => {
      const request = view(ns, "view", "t");
      const answer = await client.createMaterializedView({ ...request, withNoData: false });
      return [seen(answer), await counted(client, request.id, "true", 5n)];
    },
  },
  {
    operation: "createMaterializedView",
    name: "of a missing table",
    fails: "TableNotFound",
    run: (client, ns) => client.createMaterializedView(view(ns, "noview", "missing")),
  },
  {
    operation: "createMaterializedView",
    name: "of a function",
    fails: "Unsupported",
    run: (client, ns) =>
      client.createMaterializedView({ ...view(ns, "noview", "t"), kind: MaterializedViewKind.CHUNKER }),
  },
  {
    operation: "refreshMaterializedView",
    name: "of an older version",
    run: async (client, ns) => {
      const source = await fresh(client, ns, "source");
      await client.insertIntoTable({ id: source }, personStream(people(2, 5)));
      const request = view(ns, "refreshed", "own_source");
      await client.createMaterializedView(request);
      const answer = await client.refreshMaterializedView({ id: request.id, srcVersion: 1n, concurrency: 2 });
      return [seen(answer), await counted(client, request.id, "true", 5n)];
    },
  },
  {
    operation: "refreshMaterializedView",
    name: "of a table that is no view",
    fails: "InvalidInput",
    run: (client, ns) => client.refreshMaterializedView({ id: [ns, "t"] }),
  },
];
