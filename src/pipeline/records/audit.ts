import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import type { Databases } from "../call/databases.ts";
import { type Interceptor, isStream, type OperationRequest } from "../call/interceptor.ts";
import { auditEntry, isAllowed, type Stage } from "./audit-entry.ts";
import { failureOf, type Outcome } from "./observe.ts";

/** Receives the lines of the audit log. */
export interface AuditTrail {
  /**
   * Returns at once while lines can be written, or where calls do not depend on it.
   *
   * @throws LanceError ServiceUnavailable
   */
  requireWritable(): void;
  /**
   * Writes a line, given without its end; resolves when the system has it.
   *
   * @param isUnproven whether the line is about a call that was refused before its caller had proved who it is
   * @throws LanceError ServiceUnavailable if it cannot be written and calls depend on it
   */
  write(line: string, isUnproven: boolean): Promise<void>;
}

/**
 * Writes a line about each call before its answer goes out, and two about a download: before its first message, and at
 * its end.
 *
 * If calls depend on the lines, a call fails whose line cannot be written, and from then on calls are refused before
 * they reach the backend, until a line can be written again.
 *
 * @param databases whose backends tell which tables a new view reads. Default: nothing tells.
 */
export function audit(trail: AuditTrail, databases: Databases = new Map()): Interceptor {
  return async (call, request, next) => {
    const started = performance.now();
    const note = (stage: Stage, outcome: Outcome) => {
      const ms = performance.now() - started;
      // A query takes time to read, which a call that was refused must not take.
      const backend = call.admitted === true ? databases.get(call.database)?.backend : undefined;
      const line = auditEntry(call, request as OperationRequest, stage, outcome, ms, backend);
      return trail.write(line, call.principal === undefined && !isAllowed(call, outcome));
    };
    let response: Awaited<ReturnType<typeof next>>;
    try {
      trail.requireWritable();
      response = await next(call, request);
    } catch (thrown) {
      const error = failureOf(call, thrown);
      await note("end", error.kind);
      throw error;
    }
    if (isStream(response)) return audited(response, call, note);
    await note("end", "OK");
    return response;
  };
}

async function* audited(
  messages: AsyncIterable<Message>,
  call: Call,
  note: (stage: Stage, outcome: Outcome) => Promise<void>,
): AsyncIterable<never> {
  // A reader that leaves ends this generator without an error.
  let outcome: Outcome = "Cancelled";
  let begun = false;
  try {
    for await (const message of messages) {
      if (!begun) await note("begin", "OK");
      begun = true;
      yield message as never;
    }
    outcome = "OK";
  } catch (thrown) {
    outcome = failureOf(call, thrown).kind;
    throw thrown;
  } finally {
    const written = note("end", outcome);
    // The failure of the call comes before that of its line.
    await (outcome === "OK" ? written : written.catch(() => {}));
  }
}
