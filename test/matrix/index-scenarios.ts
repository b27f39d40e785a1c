import { people, personStream } from "../support/arrow.ts";
import { type Scenario, text } from "./scenario.ts";
import { fresh } from "./tables.ts";

/** Operations on indices. */
export const INDEX_SCENARIOS: readonly Scenario[] = [
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
    run: (client, ns) => client.createTableIndex({ id: [ns, "t"], column: "id", indexType: "RTREE" }),
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
];
