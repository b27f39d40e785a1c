import { FtsOperator } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { columnsOf, cut, otherStream, people, personStream, rowsOf } from "../support/arrow.ts";
import type { Download, LanceClient } from "../support/client.ts";
import { textsStream } from "../support/rows.ts";
import { type Scenario, text } from "./scenario.ts";

/** Returns the content of a download, whether it came as a stream or as a file. */
async function result(download: Promise<Download>): Promise<unknown> {
  const { bytes } = await download;
  return { columns: columnsOf(bytes), rows: rowsOf(bytes) };
}

/** Creates a table for one scenario. */
async function fresh(client: LanceClient, ns: string, name: string): Promise<string[]> {
  await client.createTable({ id: [ns, name] }, personStream(people(5)));
  return [ns, name];
}

/** Creates a table of texts for one scenario. */
async function texts(client: LanceClient, ns: string, name: string): Promise<string[]> {
  await client.createTable({ id: [ns, name] }, textsStream());
  return [ns, name];
}

const UPSERT = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };

/** The operations that change rows or search them, with success and with failure. */
export const CHANGE_SCENARIOS: readonly Scenario[] = [
  {
    operation: "mergeInsertIntoTable",
    name: "with every flag, in pieces",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "merged");
      const options = {
        ...UPSERT,
        on: ["id", "name"],
        whenMatchedUpdateAllFilt: "target.id > 2",
        whenNotMatchedBySourceDelete: true,
        whenNotMatchedBySourceDeleteFilt: "id = 1",
        timeout: "30s",
        useIndex: false,
      };
      const answer = await client.mergeInsertIntoTable(
        { id, ...options },
        cut(personStream(people(4, 3)), 100),
      );
      return [answer, await result(client.queryTable({ id, orderBy: [{ columnName: "id" }] }))];
    },
  },
  {
    operation: "mergeInsertIntoTable",
    name: "into a declared table",
    run: async (client, ns) => {
      await client.declareTable({ id: [ns, "mergedinto"] });
      return client.mergeInsertIntoTable({ id: [ns, "mergedinto"], ...UPSERT }, personStream(people(2)));
    },
  },
  {
    operation: "mergeInsertIntoTable",
    name: "without a flag",
    fails: "InvalidInput",
    run: (client, ns) => client.mergeInsertIntoTable({ id: [ns, "t"], on: ["id"] }, personStream([])),
  },
  {
    operation: "mergeInsertIntoTable",
    name: "with a wrong timeout",
    fails: "InvalidInput",
    run: (client, ns) =>
      client.mergeInsertIntoTable({ id: [ns, "t"], ...UPSERT, timeout: "soon" }, personStream([])),
  },
  {
    operation: "mergeInsertIntoTable",
    name: "on a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) =>
      client.mergeInsertIntoTable({ id: [ns, "t"], ...UPSERT, on: ["nothing"] }, personStream(people(1))),
  },
  {
    operation: "mergeInsertIntoTable",
    name: "of another schema",
    fails: "TableSchemaValidationError",
    run: (client, ns) => client.mergeInsertIntoTable({ id: [ns, "t"], ...UPSERT }, otherStream()),
  },
  {
    operation: "updateTable",
    name: "with a predicate and properties",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "updated");
      const expression = `'${text.replaceAll("'", "''")}'`;
      const updates = [{ column: "name", expression }];
      const answer = await client.updateTable({ id, updates, predicate: "id > 2", properties: { a: text } });
      return [answer, await result(client.queryTable({ id, orderBy: [{ columnName: "id" }] }))];
    },
  },
  {
    operation: "updateTable",
    name: "without columns",
    fails: "InvalidInput",
    run: (client, ns) => client.updateTable({ id: [ns, "t"], updates: [] }),
  },
  {
    operation: "updateTable",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) =>
      client.updateTable({ id: [ns, "t"], updates: [{ column: "nothing", expression: "1" }] }),
  },
  {
    operation: "deleteFromTable",
    name: "by a predicate",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "shrunk");
      const answer = await client.deleteFromTable({ id, predicate: "id < 2" });
      return [answer, await client.countTableRows({ id })];
    },
  },
  {
    operation: "deleteFromTable",
    name: "without a predicate",
    fails: "InvalidInput",
    run: (client, ns) => client.deleteFromTable({ id: [ns, "t"] }),
  },
  {
    operation: "getTableStats",
    name: "of a table",
    run: (client, ns) => client.getTableStats({ id: [ns, "t"] }),
  },
  {
    operation: "getTableStats",
    name: "of a declared table",
    fails: "TableNotFound",
    run: (client, ns) => client.getTableStats({ id: [ns, "d"] }),
  },
  {
    operation: "explainTableQueryPlan",
    name: "of a vector search",
    run: (client, ns) => {
      const query = { vector: { singleVector: [1.5, 0] }, k: 3n, filter: "id > 1", distanceType: "dot" };
      return client.explainTableQueryPlan({ id: [ns, "t"], query, verbose: true });
    },
  },
  {
    operation: "explainTableQueryPlan",
    name: "of a wrong filter",
    fails: "InvalidInput",
    run: (client, ns) => client.explainTableQueryPlan({ id: [ns, "t"], query: { filter: "id >" } }),
  },
  {
    operation: "analyzeTableQueryPlan",
    name: "of a scan",
    run: async (client, ns) => {
      const { analysis } = await client.analyzeTableQueryPlan({ id: [ns, "t"], filter: "id > 2" });
      return /output_rows=2/.test(analysis);
    },
  },
  {
    operation: "analyzeTableQueryPlan",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) => client.analyzeTableQueryPlan({ id: [ns, "t"], filter: "nothing = 1" }),
  },
  {
    operation: "queryTable",
    name: "near several vectors",
    run: (client, ns) => {
      const vector = { multiVector: [{ values: [1, 0] }, { values: [4, 0] }] };
      const probes = { nprobes: 20, minimumNprobes: 20, maximumNprobes: 0, ef: 10, refineFactor: 2 };
      return result(client.queryTable({ id: [ns, "t"], vector, ...probes, k: 2n, distanceType: "l2" }));
    },
  },
  {
    operation: "queryTable",
    name: "in an order, under expressions",
    run: (client, ns) => {
      const orderBy = [{ columnName: "name", ascending: false, nullsFirst: true }, { columnName: "id" }];
      const columns = { columnAliases: { twice: "id * 2" } };
      return result(client.queryTable({ id: [ns, "t"], orderBy, columns, k: 3n, offset: 1n }));
    },
  },
  {
    operation: "queryTable",
    name: "for a tree of words",
    run: async (client, ns) => {
      const id = await texts(client, ns, "tree");
      const match = (terms: string) => ({
        match: { terms, column: "body", operator: FtsOperator.AND, boost: 1.5 },
      });
      const phrase = { phrase: { terms: "lazy dog", column: "body", slop: 0 } };
      const boost = { boost: { positive: match("banana"), negative: match("cherry"), negativeBoost: 0.25 } };
      const multiMatch = { multiMatch: { matchQueries: [{ terms: "été", column: "body" }] } };
      const should = [phrase, boost, multiMatch];
      const query = { boolean: { must: [], should, mustNot: [match("cherry")] } };
      const columns = { columnNames: ["id", "body"] };
      return result(client.queryTable({ id, fullTextQuery: { structuredQuery: { query } }, columns }));
    },
  },
  {
    operation: "queryTable",
    name: "for words and a vector",
    run: async (client, ns) => {
      const id = await texts(client, ns, "hybrid");
      const fullTextQuery = { stringQuery: { query: "apple", columns: ["body"] } };
      const vector = { singleVector: [0, 0] };
      const columns = { columnNames: ["id"] };
      return result(client.queryTable({ id, fullTextQuery, vector, columns, k: 1n }));
    },
  },
  {
    operation: "queryTable",
    name: "for words without an index",
    fails: "InvalidInput",
    run: (client, ns) =>
      client.queryTable({ id: [ns, "t"], fullTextQuery: { stringQuery: { query: "word" } } }),
  },
];
