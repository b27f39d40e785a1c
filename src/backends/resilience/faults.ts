import { LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { Health } from "../../runtime/circuit.ts";
import type { Repeatable } from "./resilience.ts";

/** Consequences of a fault. */
interface FaultRule {
  /** Calls that may be retried after it. */
  readonly repeats: readonly Repeatable[];
  /** Health of the address. */
  readonly health: Health;
}

const ALL: readonly Repeatable[] = ["parallel", "serial", "unsent"];
const SAFE: readonly Repeatable[] = ["parallel", "serial"];
const NONE: readonly Repeatable[] = [];

/** The rules, which docs/upstreams.md lists for people. */
const RULES: Readonly<Record<UpstreamFault, FaultRule>> = {
  unreached: { repeats: ALL, health: "failing" },
  reset: { repeats: SAFE, health: "failing" },
  unavailable: { repeats: SAFE, health: "failing" },
  // The address works; there are too many callers.
  throttled: { repeats: SAFE, health: "working" },
  silent: { repeats: NONE, health: "failing" },
  broken: { repeats: NONE, health: "failing" },
  oversized: { repeats: NONE, health: "working" },
  crowded: { repeats: NONE, health: "unknown" },
};

/** Whether a call may be retried after this failure. */
export function mayRepeat(error: unknown, repeatable: Repeatable): error is LanceError {
  if (!(error instanceof LanceError) || error.fault === undefined) return false;
  return RULES[error.fault].repeats.includes(repeatable);
}

/** Returns what a failed attempt reveals about the address. */
export function healthOf(error: unknown): Health {
  if (!(error instanceof LanceError)) return "unknown";
  if (error.fault !== undefined) return RULES[error.fault].health;
  return error.is("Cancelled") || error.is("DeadlineExceeded") ? "unknown" : "working";
}
