import { type Call, OF_CALL } from "../namespace/call.ts";
import { LanceError, toLanceError } from "../namespace/errors.ts";
import { joinIdentifier } from "../namespace/identifier.ts";

/** Runs one call and logs how it ended; whatever it throws comes out as a LanceError. */
export async function observe<T>(call: Call, run: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    const result = await run();
    logEnd(call, started);
    return result;
  } catch (thrown) {
    throw logFailure(call, started, thrown);
  }
}

/** The same for a call that answers with a stream; it ends when the stream does, or when its reader leaves. */
export async function* observeStream<T>(call: Call, run: () => AsyncIterable<T>): AsyncIterable<T> {
  const started = performance.now();
  let left = true;
  try {
    yield* run();
    left = false;
    logEnd(call, started);
  } catch (thrown) {
    left = false;
    throw logFailure(call, started, thrown);
  } finally {
    if (left) logFailure(call, started, new LanceError("Cancelled", "the client left the answer"));
  }
}

/** Logs what a call is refused with before it has begun, and hands it out to be thrown. */
export function refused(call: Call, error: unknown): LanceError {
  return logFailure(call, performance.now(), error);
}

function logEnd(call: Call, started: number): void {
  if (call.log.isLevelEnabled("debug")) call.log.debug(fields(call, started), "call");
}

function logFailure(call: Call, started: number, thrown: unknown): LanceError {
  const error = failureOf(call, thrown);
  const entry = { ...fields(call, started), code: error.entry.name, error: error.message };
  if (error.is("Internal")) call.log.error({ ...entry, err: error.cause ?? error }, "call failed");
  else if (error.is("ServiceUnavailable")) call.log.warn({ ...entry, err: error.cause }, "call failed");
  else call.log.debug(entry, "call refused");
  return error;
}

/** What an aborted call throws is only the echo of the abort, whose reason says more. */
function failureOf(call: Call, thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  const reason: unknown = call.signal.aborted ? call.signal.reason : undefined;
  return reason instanceof LanceError ? reason : toLanceError(thrown);
}

function fields(call: Call, started: number): Record<string, unknown> {
  return {
    [OF_CALL]: call,
    requestId: call.requestId,
    operation: call.method.name,
    protocol: call.protocol,
    ...(call.database !== undefined && { database: call.database }),
    id: joinIdentifier(call.id),
    ...(call.decisions.length > 0 && { upstream: call.decisions }),
    ms: Math.round((performance.now() - started) * 1000) / 1000,
  };
}
