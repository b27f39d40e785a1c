import { type Scenario, text } from "./scenario.ts";
import { grown, MISSING_BRANCH } from "./tables.ts";

/** Operations on the versions of tables, and commits of several tables. */
export const VERSION_SCENARIOS: readonly Scenario[] = [
  {
    operation: "listTableVersions",
    name: "page by page, the newest first",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "listed"]);
      const { pageToken = "" } = await client.listTableVersions({ id, descending: true, limit: 2 });
      const rest = await client.listTableVersions({ id, descending: true, limit: 2, pageToken });
      return [pageToken, rest.pageToken, rest.versions.map(({ version }) => version)];
    },
  },
  {
    operation: "listTableVersions",
    name: "of a table that is only declared",
    run: (client, ns) => client.listTableVersions({ id: [ns, "d"] }),
  },
  {
    operation: "listTableVersions",
    name: "of a missing branch",
    fails: "TableBranchNotFound",
    run: (client, ns) => client.listTableVersions({ id: [ns, "t"], ...MISSING_BRANCH }),
  },
  {
    operation: "describeTableVersion",
    name: "of the newest",
    run: async (client, ns) => {
      const { version } = await client.describeTableVersion({ id: [ns, "t"] });
      return [
        version?.version,
        typeof version?.manifestSize,
        typeof version?.timestampMillis,
        version?.metadata,
      ];
    },
  },
  {
    operation: "describeTableVersion",
    name: "of a missing version",
    fails: "TableVersionNotFound",
    run: (client, ns) => client.describeTableVersion({ id: [ns, "t"], version: 9_007_199_254_740_991n }),
  },
  {
    operation: "restoreTable",
    name: "to an older version",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "restored"]);
      const { transactionId } = await client.restoreTable({ id, version: 1n });
      return [typeof transactionId, await client.countTableRows({ id })];
    },
  },
  {
    operation: "restoreTable",
    name: "to a missing version",
    fails: "TableVersionNotFound",
    run: (client, ns) => client.restoreTable({ id: [ns, "t"], version: 9_007_199_254_740_991n }),
  },
  {
    operation: "createTableVersion",
    name: "without a staged manifest",
    fails: "InvalidInput",
    run: (client, ns) => client.createTableVersion({ id: [ns, "t"], version: 2n, manifestPath: "x" }),
  },
  {
    operation: "createTableVersion",
    name: "of a missing table",
    fails: "TableNotFound",
    run: (client, ns) => client.createTableVersion({ id: [ns, "missing"], version: 2n, manifestPath: "x" }),
  },
  {
    operation: "batchDeleteTableVersions",
    name: "of the oldest",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "pruned"]);
      return await client.batchDeleteTableVersions({ id, ranges: [{ startVersion: 0n, endVersion: 3n }] });
    },
  },
  {
    operation: "batchDeleteTableVersions",
    name: "without ranges",
    fails: "InvalidInput",
    run: (client, ns) => client.batchDeleteTableVersions({ id: [ns, "t"] }),
  },
  {
    operation: "batchCreateTableVersions",
    name: "with one of a missing table",
    fails: "TableNotFound",
    run: (client, ns) =>
      client.batchCreateTableVersions({
        entries: [{ id: [ns, "missing"], version: 1n, manifestPath: "x" }],
      }),
  },
  {
    operation: "batchCreateTableVersions",
    name: "without entries",
    fails: "InvalidInput",
    run: (client) => client.batchCreateTableVersions(),
  },
  {
    operation: "batchCommitTables",
    name: "of two tables",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "committed"]);
      return await client.batchCommitTables({
        operations: [
          { operation: { case: "declareTable", value: { id: [ns, "batched"], properties: { a: text } } } },
          {
            operation: {
              case: "deleteTableVersions",
              value: { id, ranges: [{ startVersion: 0n, endVersion: 2n }] },
            },
          },
        ],
      });
    },
  },
  {
    operation: "batchCommitTables",
    name: "with an entry that says nothing",
    fails: "InvalidInput",
    run: (client) => client.batchCommitTables({ operations: [{}] }),
  },
];
