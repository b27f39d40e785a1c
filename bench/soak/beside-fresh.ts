import type { Fleet } from "../../test/support/fleet.ts";
import { type Call, type ClientOptions, work } from "./clients.ts";
import type { Ledger } from "./ledger.ts";
import { type Latencies, latenciesOf } from "./samples.ts";

/** Gateways, and what their clients have written. */
export interface Side {
  readonly fleet: Fleet;
  readonly ledgers: readonly Ledger[];
}

/** The reads of an old table and those of a fresh one. */
export interface BesideFresh {
  readonly old: Latencies;
  readonly fresh: Latencies;
}

/** The fresh table's windows are its first minute. */
const WINDOWS = 6;
const WINDOW_MS = 10_000;

/**
 * Works on an old table and on a fresh one in turn, so that both meet the same changes of the machine's speed, which differs more
 * from minute to minute than the tables do. The gateways of the other table are stopped meanwhile.
 */
export async function workBesideFresh(
  options: Omit<ClientOptions, "port" | "round">,
  sides: Readonly<Record<keyof BesideFresh, Side>>,
): Promise<BesideFresh> {
  const durations: Record<keyof BesideFresh, number[]> = { old: [], fresh: [] };
  const names = ["old", "fresh"] as const;
  for (const { fleet } of Object.values(sides)) signal(fleet, "SIGSTOP");
  for (let window = 0; window < WINDOWS; window++) {
    for (const name of window % 2 === 0 ? names : names.toReversed()) {
      const { fleet, ledgers } = sides[name];
      const onCall = (call: Call) => {
        if (!call.kind.isWrite) durations[name].push(call.ms);
        options.onCall(call);
      };
      signal(fleet, "SIGCONT");
      const client = { ...options, onCall, port: fleet.port, round: window + 1 };
      await work(client, ledgers, AbortSignal.timeout(WINDOW_MS));
      signal(fleet, "SIGSTOP");
    }
  }
  for (const { fleet } of Object.values(sides)) signal(fleet, "SIGCONT");
  return { old: latenciesOf(durations.old), fresh: latenciesOf(durations.fresh) };
}

function signal({ pids }: Fleet, name: "SIGSTOP" | "SIGCONT"): void {
  for (const pid of pids) process.kill(pid, name);
}
