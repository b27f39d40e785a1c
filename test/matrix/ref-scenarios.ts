import type { Scenario } from "./scenario.ts";
import { grown } from "./tables.ts";

/** Operations on tags and branches. */
export const REF_SCENARIOS: readonly Scenario[] = [
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
];
