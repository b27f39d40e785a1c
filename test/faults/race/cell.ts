import type { HistoryCall, SequentialModel } from "../../support/linearizability.ts";
import { type RaceCall, type RaceResult, REFUSALS } from "./racer.ts";

/** Two names of a race. A rename concerns both, so they are checked together. */
export interface Cell {
  readonly names: readonly [readonly string[], readonly string[]];
}

/** The existing tables by name, each with its location. */
type Tables = ReadonlyMap<string, string>;

/** The location of a table that no answer has named. */
const UNKNOWN = "?";

const keyOf = (id: readonly string[]) => id.join("$");

/**
 * The behaviour of a cell's tables when calls come one at a time. A location distinguishes a table from an earlier
 * table of its name, so that a drop must concern the right table.
 */
export const CELL_MODEL: SequentialModel<Tables, RaceCall, RaceResult> = {
  initial: new Map(),
  step(tables, call, result) {
    const key = keyOf(call.id);
    const found = tables.get(key);
    const happened = () => outcome(tables, call, result?.ok ? result.location : undefined);
    if (result === undefined || result.unclear) return [tables, ...happened()];
    if (result.ok) return happened();
    const target = call.kind === "rename" ? tables.get(keyOf(call.to)) : found;
    const refused: Readonly<Record<number, boolean>> = {
      [REFUSALS.notFound]: call.kind !== "declare" && found === undefined,
      [REFUSALS.alreadyExists]: (call.kind === "declare" || call.kind === "rename") && target !== undefined,
      [REFUSALS.concurrent]: true,
    };
    return refused[result.code] ? [tables] : [];
  },
  key: (tables) => JSON.stringify([...tables].sort(([a], [b]) => (a < b ? -1 : 1))),
};

/** Returns the state after a successful call; an empty list when the call could not succeed. */
function outcome(tables: Tables, call: RaceCall, location: string | undefined): Tables[] {
  const key = keyOf(call.id);
  const found = tables.get(key);
  const matches = location === undefined || found === UNKNOWN || found === location;
  const next = new Map(tables);
  switch (call.kind) {
    case "create":
    case "declare":
      if (found !== undefined) return [];
      return [next.set(key, location ?? UNKNOWN)];
    case "drop":
      if (found === undefined || !matches) return [];
      next.delete(key);
      return [next];
    case "exists":
    case "describe":
      return found !== undefined && matches ? [tables] : [];
    case "rename": {
      const target = keyOf(call.to);
      if (found === undefined || next.has(target)) return [];
      next.delete(key);
      return [next.set(target, found)];
    }
  }
}

/** Formats the history of a cell for a message. */
export function describeHistory(
  history: readonly (HistoryCall<RaceCall, RaceResult> & { racer: string })[],
): string {
  const start = Math.min(...history.map(({ invokedAt }) => invokedAt));
  return [...history]
    .sort((a, b) => a.invokedAt - b.invokedAt)
    .map(({ racer, call, result, invokedAt, returnedAt }) => {
      const [from, to] = [invokedAt, returnedAt].map((at) => (at - start).toFixed(2));
      const target = call.kind === "rename" ? ` to ${keyOf(call.to)}` : "";
      return `${from} – ${to} ms ${racer}: ${call.kind} ${keyOf(call.id)}${target} → ${JSON.stringify(result)}`;
    })
    .join("\n");
}
