import { LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { Repeatable } from "./port.ts";

/** What follows from a fault. */
interface FaultRule {
  /** The calls that may be made again after it. */
  readonly repeats: readonly Repeatable[];
  /** Whether it speaks against the address. */
  readonly counts: boolean;
}

const ALL: readonly Repeatable[] = ["parallel", "serial", "unsent"];
const SAFE: readonly Repeatable[] = ["parallel", "serial"];
const NONE: readonly Repeatable[] = [];

/** The rules; docs/upstreams.md has them for people. */
const RULES: Readonly<Record<UpstreamFault, FaultRule>> = {
  unreached: { repeats: ALL, counts: true },
  reset: { repeats: SAFE, counts: true },
  unavailable: { repeats: SAFE, counts: true },
  // The address works; it is the callers that are too many.
  throttled: { repeats: SAFE, counts: false },
  silent: { repeats: NONE, counts: true },
  broken: { repeats: NONE, counts: true },
};

/** Whether a call may be made again after it failed so. */
export function mayRepeat(error: unknown, repeatable: Repeatable): error is LanceError {
  if (!(error instanceof LanceError) || error.fault === undefined) return false;
  return RULES[error.fault].repeats.includes(repeatable);
}

/** What the end of an attempt says of the address: it failed, it works, or nothing, when we ended it ourselves. */
export type Health = "failing" | "working" | "unknown";

/** What a failed attempt says of the address. */
export function healthOf(error: unknown): Health {
  if (!(error instanceof LanceError)) return "unknown";
  if (error.fault !== undefined) return RULES[error.fault].counts ? "failing" : "working";
  return error.is("Cancelled") || error.is("DeadlineExceeded") ? "unknown" : "working";
}
