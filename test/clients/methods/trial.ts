import type { RecordedRequest } from "../support/recorder.ts";

/** Outcome of a call: the answer as plain data, or the error. */
export interface Attempt {
  readonly answer?: unknown;
  readonly error?: string;
}

/** A method that was called through the gateway, and on a directory with the library alone. */
export interface Trial {
  /** The object that has the method: a connection, a table, or something that they hand out. */
  readonly object: string;
  /** Its name, in snake case for every client. */
  readonly method: string;
  readonly client: "sync" | "async" | "node";
  readonly local: Attempt;
  readonly remote: Attempt;
  /** The requests of the call through the gateway. */
  readonly requests: readonly RecordedRequest[];
}

/**
 * Outcome of a method:
 *
 * - `served`: the gateway answers, or refuses, as the library does on a directory, or it answers more;
 * - `differs`: it answers otherwise;
 * - `client`: the client refuses the call by itself, without asking the gateway;
 * - `unsupported`: the gateway refuses it;
 * - `fails`: anything else.
 */
export type Outcome = "served" | "differs" | "client" | "unsupported" | "fails";

/** Returns what came of a method. */
export function outcomeOf({ local, remote, requests }: Trial): Outcome {
  if (remote.error === undefined) {
    const isEqual =
      local.error !== undefined || JSON.stringify(local.answer) === JSON.stringify(remote.answer);
    return isEqual ? "served" : "differs";
  }
  if (requests.every(({ status }) => status < 400)) return "client";
  if (requests.at(-1)?.status === 406) return "unsupported";
  return isSameRefusal(local.error, remote.error) ? "served" : "fails";
}

/** Whether both refuse with the same words, which the client puts into an error of HTTP. */
function isSameRefusal(local: string | undefined, remote: string): boolean {
  const words = local?.replace(/^.*?(?:Error: |Invalid input, )+/, "") ?? "";
  return words !== "" && remote.includes(words);
}

/** A method in every client that has it. */
export interface MethodRow {
  readonly object: string;
  readonly method: string;
  readonly sync?: Outcome;
  readonly async?: Outcome;
  readonly node?: Outcome;
  readonly routes: readonly string[];
}

/** Routes of what a call needs before its own, such as a job, and of a look at what it did. */
const COMMON: ReadonlySet<string> = new Set([
  "POST /v1/table/{id}/add_columns",
  "POST /v1/table/{id}/backfill_column",
  "POST /v1/table/{id}/describe",
  "GET /v1/table",
  "POST /v1/table/{id}/query",
]);

/** Puts the trials of all clients into a row for each method. */
export function rowsOf(trials: readonly Trial[]): MethodRow[] {
  const rows = new Map<string, MethodRow>();
  for (const trial of trials) {
    const { object, method, client } = trial;
    const key = `${object}.${method}`;
    const before = rows.get(key) ?? { object, method, routes: [] };
    const called = trial.requests.map(({ route }) => route);
    rows.set(key, {
      ...before,
      [client]: outcomeOf(trial),
      routes: [...new Set([...before.routes, ...called])].sort(),
    });
  }
  return [...rows.values()].map((row) => ({ ...row, routes: ownRoutes(row.routes) }));
}

function ownRoutes(routes: readonly string[]): readonly string[] {
  const own = routes.filter((route) => !COMMON.has(route));
  return own.length > 0 ? own : routes;
}
