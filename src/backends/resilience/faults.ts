import { LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { Repeatable } from "./resilience.ts";

/** What the end of an attempt says of the address: it failed, it works, or nothing, when we ended it ourselves. */
export type Health = "failing" | "working" | "unknown";

/** What follows from a fault. */
interface FaultRule {
  /** The calls that may be made again after it. */
  readonly repeats: readonly Repeatable[];
  /** What it says of the address. */
  readonly health: Health;
}

const ALL: readonly Repeatable[] = ["parallel", "serial", "unsent"];
const SAFE: readonly Repeatable[] = ["parallel", "serial"];
const NONE: readonly Repeatable[] = [];

/** The rules; docs/upstreams.md has them for people. */
const RULES: Readonly<Record<UpstreamFault, FaultRule>> = {
  unreached: { repeats: ALL, health: "failing" },
  reset: { repeats: SAFE, health: "failing" },
  unavailable: { repeats: SAFE, health: "failing" },
  // The address works; it is the callers that are too many.
  throttled: { repeats: SAFE, health: "working" },
  silent: { repeats: NONE, health: "failing" },
  broken: { repeats: NONE, health: "failing" },
  crowded: { repeats: NONE, health: "unknown" },
};

/** Whether a call may be made again after it failed so. */
export function mayRepeat(error: unknown, repeatable: Repeatable): error is LanceError {
  if (!(error instanceof LanceError) || error.fault === undefined) return false;
  return RULES[error.fault].repeats.includes(repeatable);
}

/** What a failed attempt says of the address. */
export function healthOf(error: unknown): Health {
  if (!(error instanceof LanceError)) return "unknown";
  if (error.fault !== undefined) return RULES[error.fault].health;
  return error.is("Cancelled") || error.is("DeadlineExceeded") ? "unknown" : "working";
}
