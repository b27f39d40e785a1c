import { createUpkeepLeases } from "../../../src/backends/dir/upkeep/lease.ts";
import { optimizeTables } from "../../../src/backends/dir/upkeep/optimize-now.ts";
import { LanceError } from "../../../src/namespace/errors.ts";
import { rows, type Scenario, type World } from "./world.ts";

/** Compacts a table whose owner before has ended. */
async function optimize({ context }: World): Promise<void> {
  const { layout, store } = context;
  const clock = { now: async () => (await context.clock.now()) + 120_000 };
  const leases = createUpkeepLeases(layout.baseKey, store, clock);
  for await (const result of optimizeTables(context, { tables: [["n", "a"]], leases, waitMs: 0 })) {
    if (result.outcome !== "optimized")
      throw new LanceError("OutcomeUnknown", JSON.stringify(result.outcome));
  }
}

/** A compaction commits the ids of its fragments as a version before the one with the fragments. */
const reservedFirst: Scenario["between"] = (before, after) => {
  const [older = "", newer = ""] = [before["table n$a"]?.trimEnd(), after["table n$a"]?.trimEnd()];
  if (!newer.startsWith(older)) return [];
  const [, reserved] = newer.slice(older.length).split(",");
  return [{ ...before, "table n$a": `${older},${reserved} ` }];
};

/** Interrupted upkeep of tables. */
export const UPKEEP_SCENARIOS: Readonly<Record<string, Scenario>> = {
  optimize: {
    byEngine: true,
    async prepare({ client }) {
      for (const id of [4, 5]) await client.upload("insertIntoTable", "n$a", {}, rows(id));
    },
    between: reservedFirst,
    steps: [optimize, ({ client }) => client.upload("insertIntoTable", "n$a", {}, rows(6)), optimize],
  },
};
