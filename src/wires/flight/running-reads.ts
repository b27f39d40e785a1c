import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";

/** The reads that run now, by their tickets. */
export interface RunningReads {
  /** Adds a read; returns the function that removes it. */
  add(ticketId: string, call: Call): () => void;
  /** Ends the reads of a ticket, and returns their number. */
  cancel(ticketId: string): number;
}

/** Creates the list of the reads of this worker. */
export function createRunningReads(): RunningReads {
  const byTicket = new Map<string, Set<Call>>();
  return {
    add(id, call) {
      const calls = byTicket.get(id) ?? new Set();
      byTicket.set(id, calls.add(call));
      return () => {
        calls.delete(call);
        if (calls.size === 0 && byTicket.get(id) === calls) byTicket.delete(id);
      };
    },
    cancel(id) {
      const calls = [...(byTicket.get(id) ?? [])];
      for (const call of calls) call.cutOff?.(new LanceError("Cancelled", "the flight was cancelled"));
      return calls.length;
    },
  };
}
