import {
  SetPropertyMode,
  TransactionStatus,
  UnsetPropertyMode,
} from "../../src/gen/lance/namespace/v1/transaction_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";
import { type Scenario, text } from "./scenario.ts";

/** A table of its own with versions 1 to 3. */
async function grown(client: LanceClient, id: string[]): Promise<string[]> {
  await client.createTable({ id }, personStream(people(1)));
  for (const first of [1, 2]) await client.insertIntoTable({ id }, personStream(people(1, first)));
  return id;
}

const missingBranch = { branch: "missing" };

/** The operations on versions, tags, branches and transactions, and renaming. */
export const HISTORY_SCENARIOS: readonly Scenario[] = [
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
    run: (client, ns) => client.listTableVersions({ id: [ns, "t"], ...missingBranch }),
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
  {
    operation: "createTableTag",
    name: "of a missing version",
    fails: "TableVersionNotFound",
    run: (client, ns) => client.createTableTag({ id: [ns, "t"], tag: "x", version: 9_007_199_254_740_991n }),
  },
  {
    operation: "createTableTag",
    name: "that exists",
    fails: "TableTagAlreadyExists",
    run: async (client, ns) => {
      await client.createTableTag({ id: [ns, "t"], tag: "twice", version: 1n });
      await client.createTableTag({ id: [ns, "t"], tag: "twice", version: 1n });
    },
  },
  {
    operation: "listTableTags",
    name: "page by page",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "tagged"]);
      for (const [i, tag] of ["a", "b", "\u00e9"].entries()) {
        await client.createTableTag({ id, tag, version: BigInt(i + 1) });
      }
      const { pageToken = "" } = await client.listTableTags({ id, limit: 2 });
      const { tags } = await client.listTableTags({ id, limit: 2, pageToken });
      return Object.entries(tags).map(([name, { version, branch }]) => [name, version, branch]);
    },
  },
  {
    operation: "getTableTagVersion",
    name: "on a branch",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "branch-tagged"]);
      await client.createTableBranch({ id, name: "b" });
      await client.createTableTag({ id, tag: "on", version: 3n, branch: "b" });
      return await client.getTableTagVersion({ id, tag: "on" });
    },
  },
  {
    operation: "getTableTagVersion",
    name: "that is missing",
    fails: "TableTagNotFound",
    run: (client, ns) => client.getTableTagVersion({ id: [ns, "t"], tag: "missing" }),
  },
  {
    operation: "updateTableTag",
    name: "to another version",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "retagged"]);
      await client.createTableTag({ id, tag: "moving", version: 1n });
      const answer = await client.updateTableTag({ id, tag: "moving", version: 2n });
      return [answer, await client.getTableTagVersion({ id, tag: "moving" })];
    },
  },
  {
    operation: "updateTableTag",
    name: "that is missing",
    fails: "TableTagNotFound",
    run: (client, ns) => client.updateTableTag({ id: [ns, "t"], tag: "missing", version: 1n }),
  },
  {
    operation: "deleteTableTag",
    name: "that exists",
    run: async (client, ns) => {
      await client.createTableTag({ id: [ns, "t"], tag: "gone", version: 1n });
      return await client.deleteTableTag({ id: [ns, "t"], tag: "gone" });
    },
  },
  {
    operation: "deleteTableTag",
    name: "that is missing",
    fails: "TableTagNotFound",
    run: (client, ns) => client.deleteTableTag({ id: [ns, "t"], tag: "missing" }),
  },
  {
    operation: "createTableBranch",
    name: "that exists",
    fails: "TableBranchAlreadyExists",
    run: async (client, ns) => {
      await client.createTableBranch({ id: [ns, "t"], name: "twice" });
      await client.createTableBranch({ id: [ns, "t"], name: "twice" });
    },
  },
  {
    operation: "createTableBranch",
    name: "from a missing branch",
    fails: "TableBranchNotFound",
    run: (client, ns) => client.createTableBranch({ id: [ns, "t"], name: "x", fromBranch: "missing" }),
  },
  {
    operation: "listTableBranches",
    name: "with where they begin",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "branched"]);
      await client.createTableBranch({ id, name: "a", fromVersion: 2n });
      await client.createTableBranch({ id, name: "b/c", fromBranch: "a" });
      const { branches } = await client.listTableBranches({ id });
      return Object.entries(branches).map(([name, { parentBranch, parentVersion, metadata }]) => {
        return [name, parentBranch, parentVersion, metadata];
      });
    },
  },
  {
    operation: "listTableBranches",
    name: "of a missing table",
    fails: "TableNotFound",
    run: (client, ns) => client.listTableBranches({ id: [ns, "missing"] }),
  },
  {
    operation: "deleteTableBranch",
    name: "with another one that begins on it",
    fails: "InvalidInput",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "nested"]);
      await client.createTableBranch({ id, name: "a" });
      await client.createTableBranch({ id, name: "b", fromBranch: "a" });
      await client.deleteTableBranch({ id, name: "a" });
    },
  },
  {
    operation: "deleteTableBranch",
    name: "that is missing",
    fails: "TableBranchNotFound",
    run: (client, ns) => client.deleteTableBranch({ id: [ns, "t"], name: "missing" }),
  },
  {
    operation: "describeTransaction",
    name: "by version",
    run: async (client, ns) => {
      const { status, properties } = await client.describeTransaction({ id: [ns, "t", "1"] });
      return [status, { ...properties, uuid: typeof properties["uuid"] }];
    },
  },
  {
    operation: "describeTransaction",
    name: "that is missing",
    fails: "TransactionNotFound",
    run: (client, ns) => client.describeTransaction({ id: [ns, "t", "missing"] }),
  },
  {
    operation: "alterTransaction",
    name: "with every kind of action",
    run: async (client, ns) => {
      const id = [...(await grown(client, [ns, "altered"])), "2"];
      const { status, properties } = await client.alterTransaction({
        id,
        actions: [
          { action: { case: "setStatusAction", value: { status: TransactionStatus.RUNNING } } },
          { action: { case: "setPropertyAction", value: { key: "a", value: text } } },
          {
            action: {
              case: "setPropertyAction",
              value: { key: "b", value: "1", mode: SetPropertyMode.FAIL },
            },
          },
          { action: { case: "unsetPropertyAction", value: { key: "b", mode: UnsetPropertyMode.FAIL } } },
        ],
      });
      return [status, { ...properties, uuid: "" }];
    },
  },
  {
    operation: "alterTransaction",
    name: "that sets what is set",
    fails: "ConcurrentModification",
    run: async (client, ns) => {
      const value = { key: "once", value: "1", mode: SetPropertyMode.FAIL };
      const actions = [{ action: { case: "setPropertyAction" as const, value } }];
      await client.alterTransaction({ id: [ns, "t", "1"], actions });
      await client.alterTransaction({ id: [ns, "t", "1"], actions });
    },
  },
  {
    operation: "alterTransaction",
    name: "without actions",
    fails: "InvalidInput",
    run: (client, ns) => client.alterTransaction({ id: [ns, "t", "1"] }),
  },
  {
    operation: "renameTable",
    name: "into another namespace",
    run: async (client, ns) => {
      const id = await grown(client, [ns, "before"]);
      const newNamespaceId = [ns, "child"];
      const answer = await client.renameTable({ id, newTableName: "after", newNamespaceId });
      return [answer, await client.countTableRows({ id: [...newNamespaceId, "after"] })];
    },
  },
  {
    operation: "renameTable",
    name: "to a name that is taken",
    fails: "TableAlreadyExists",
    run: (client, ns) => client.renameTable({ id: [ns, "d"], newTableName: "t" }),
  },
  {
    operation: "renameTable",
    name: "into a missing namespace",
    fails: "NamespaceNotFound",
    run: (client, ns) =>
      client.renameTable({ id: [ns, "d"], newTableName: "x", newNamespaceId: [ns, "missing"] }),
  },
  {
    operation: "renameTable",
    name: "without a name",
    fails: "InvalidInput",
    run: (client, ns) => client.renameTable({ id: [ns, "d"] }),
  },
];
