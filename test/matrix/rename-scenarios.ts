import type { Scenario } from "./scenario.ts";
import { grown } from "./tables.ts";

/** Renaming of tables. */
export const RENAME_SCENARIOS: readonly Scenario[] = [
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
