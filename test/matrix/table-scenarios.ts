import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Field, Int32, Schema, Table, tableToIPC } from "apache-arrow";
import { MaterializedViewKind } from "../../src/gen/lance/namespace/v1/view_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";
import { type Scenario, text } from "./scenario.ts";

/** A table of its own for one scenario. */
async function fresh(client: LanceClient, ns: string, name: string): Promise<string[]> {
  const id = [ns, `own_${name}`];
  await client.createTable({ id }, personStream(people(5)));
  return id;
}

/** An answer whose text of random letters is there, and nothing more of it. */
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

const stringValue = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const int64 = create(ValueSchema, {
  kind: { case: "structValue", value: { fields: { type: stringValue("int64") } } },
});

const ID = Buffer.from(tableToIPC(new Table(new Schema([new Field("id", new Int32(), false)])), "stream"));
const view = (ns: string, name: string, source: string) => ({
  id: [ns, name],
  kind: MaterializedViewKind.QUERY,
  sourceQuery: `SELECT id FROM ${ns}.${source} WHERE name <> ''`,
  outputSchema: ID.toString("base64"),
});

const MISSING = { branch: "missing" };

/** The operations on columns, metadata, indices and views, with and without success. */
export const TABLE_SCENARIOS: readonly Scenario[] = [
  {
    operation: "alterTableAddColumns",
    name: "with expressions and nulls",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "added");
      const newColumns = [
        { name: "label", expression: `concat(name, '${text.replaceAll("'", "''")}')` },
        { name: "empty", expression: "cast(null as double)" },
      ];
      const answer = await client.alterTableAddColumns({ id, newColumns });
      return [answer, (await client.describeTable({ id, loadDetailedMetadata: true })).schema];
    },
  },
  {
    operation: "alterTableAddColumns",
    name: "of a name that is taken",
    fails: "TableSchemaValidationError",
    run: (client, ns) =>
      client.alterTableAddColumns({ id: [ns, "t"], newColumns: [{ name: "name", expression: "1" }] }),
  },
  {
    operation: "alterTableAddColumns",
    name: "of a function",
    fails: "Unsupported",
    run: (client, ns) =>
      client.alterTableAddColumns({ id: [ns, "t"], newColumns: [{ name: "x", virtualColumn: {} }] }),
  },
  {
    operation: "alterTableAlterColumns",
    name: "with all of it",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "altered");
      const alterations = [
        { path: "id", rename: "number", dataType: int64 },
        { path: "name", dataType: stringValue("large_utf8") },
        { path: "vector", nullable: true },
      ];
      const answer = await client.alterTableAlterColumns({ id, alterations });
      return [answer, (await client.describeTable({ id, loadDetailedMetadata: true })).schema];
    },
  },
  {
    operation: "alterTableAlterColumns",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) =>
      client.alterTableAlterColumns({ id: [ns, "t"], alterations: [{ path: "nothing", nullable: true }] }),
  },
  {
    operation: "alterTableDropColumns",
    name: "of two",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "dropped");
      return client.alterTableDropColumns({ id, columns: ["name", "vector"] });
    },
  },
  {
    operation: "alterTableDropColumns",
    name: "of a missing branch",
    fails: "TableBranchNotFound",
    run: (client, ns) => client.alterTableDropColumns({ id: [ns, "t"], columns: ["id"], ...MISSING }),
  },
  {
    operation: "updateFieldMetadata",
    name: "with entries that come, change and go",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "fields");
      const first = { path: "id", metadata: { a: { value: text }, b: { value: "" } } };
      const second = { path: "id", metadata: { a: {}, c: { value: "3" } } };
      const third = { path: "name", metadata: { d: { value: "4" } }, replace: true };
      const before = await client.updateFieldMetadata({ id, updates: [first] });
      return [before, await client.updateFieldMetadata({ id, updates: [second, third] })];
    },
  },
  {
    operation: "updateFieldMetadata",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) =>
      client.updateFieldMetadata({ id: [ns, "t"], updates: [{ path: "nothing", metadata: {} }] }),
  },
  {
    operation: "updateTableSchemaMetadata",
    name: "twice",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "described");
      await client.updateTableSchemaMetadata({ id, metadata: { a: "1" } });
      return (await client.updateTableSchemaMetadata({ id, metadata: { b: text } })).metadata;
    },
  },
  {
    operation: "updateTableSchemaMetadata",
    name: "of a missing branch",
    fails: "TableBranchNotFound",
    run: (client, ns) =>
      client.updateTableSchemaMetadata({ id: [ns, "t"], metadata: { a: "1" }, ...MISSING }),
  },
  {
    operation: "createTableIndex",
    name: "of vectors",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "indexed");
      const parameters = { numPartitions: 1, sampleRate: 2, maxIterations: 2, distanceType: "cosine" };
      return client.createTableIndex({
        id,
        column: "vector",
        indexType: "ivf_flat",
        name: text,
        ...parameters,
      });
    },
  },
  {
    operation: "createTableIndex",
    name: "of a kind that the engine does not offer",
    fails: "Unsupported",
    run: (client, ns) => client.createTableIndex({ id: [ns, "t"], column: "id", indexType: "ZONEMAP" }),
  },
  {
    operation: "createTableScalarIndex",
    name: "of texts",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "searched");
      const options = { withPosition: true, language: "english", stem: false, customStopWords: ["p1"] };
      return client.createTableScalarIndex({ id, column: "name", indexType: "FTS", ...options });
    },
  },
  {
    operation: "createTableScalarIndex",
    name: "of vectors",
    fails: "InvalidInput",
    run: (client, ns) =>
      client.createTableScalarIndex({ id: [ns, "t"], column: "vector", indexType: "IVF_PQ" }),
  },
  {
    operation: "createTableScalarIndex",
    name: "of a name that is taken",
    fails: "TableIndexAlreadyExists",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "twiceindexed");
      const request = { id, column: "id", indexType: "BTREE" };
      await client.createTableScalarIndex(request);
      return client.createTableScalarIndex(request);
    },
  },
  {
    operation: "listTableIndices",
    name: "page by page",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "listedindices");
      for (const name of ["b", "a", text]) {
        await client.createTableIndex({ id, column: "id", indexType: "BTREE", name });
      }
      const { indexes, pageToken = "" } = await client.listTableIndices({ id, limit: 1 });
      const rest = await client.listTableIndices({ id, pageToken });
      return [...indexes, ...rest.indexes].map(({ indexUuid, createdAt, ...index }) => [
        { ...index, sizeBytes: (index.sizeBytes ?? 0n) > 0n },
        indexUuid.length,
        typeof createdAt,
      ]);
    },
  },
  {
    operation: "listTableIndices",
    name: "of a missing version",
    fails: "TableVersionNotFound",
    run: (client, ns) => client.listTableIndices({ id: [ns, "t"], version: 99n }),
  },
  {
    operation: "describeTableIndexStats",
    name: "with rows that are not in it",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "figures");
      await client.createTableIndex({ id, column: "id", indexType: "BITMAP", name: "a b/c" });
      await client.insertIntoTable({ id }, personStream(people(2, 5)));
      return client.describeTableIndexStats({ id, indexName: "a b/c" });
    },
  },
  {
    operation: "describeTableIndexStats",
    name: "of a missing index",
    fails: "TableIndexNotFound",
    run: (client, ns) => client.describeTableIndexStats({ id: [ns, "t"], indexName: "nothing" }),
  },
  {
    operation: "dropTableIndex",
    name: "by its name",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "unindexed");
      await client.createTableIndex({ id, column: "id", indexType: "BTREE", name: "größe" });
      const answer = await client.dropTableIndex({ id, indexName: "größe" });
      return [answer, (await client.listTableIndices({ id })).indexes];
    },
  },
  {
    operation: "dropTableIndex",
    name: "that is missing",
    fails: "TableIndexNotFound",
    run: (client, ns) => client.dropTableIndex({ id: [ns, "t"], indexName: "nothing" }),
  },
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
