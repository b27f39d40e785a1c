import type { Message } from "@bufbuild/protobuf";
import { type Call, endErrorOf, OF_CALL } from "../namespace/call.ts";
import { LanceError, toLanceError } from "../namespace/errors.ts";
import { joinIdentifier } from "../namespace/identifier.ts";
import { parseTraceParent } from "../namespace/trace-parent.ts";
import { type Interceptor, isStream } from "./interceptor.ts";

/** Logs how each call ends; every failure leaves it as a LanceError. A download ends with its stream. */
export const observe: Interceptor = async (call, request, next) => {
  const started = performance.now();
  try {
    const response = await next(call, request);
    if (isStream(response)) return observed(response, call, started);
    logEnd(call, started);
    return response;
  } catch (thrown) {
    throw logFailure(call, started, thrown);
  }
};

async function* observed(
  messages: AsyncIterable<Message>,
  call: Call,
  started: number,
): AsyncIterable<never> {
  let left = true;
  try {
    yield* messages as AsyncIterable<never>;
    left = false;
    logEnd(call, started);
  } catch (thrown) {
    left = false;
    throw logFailure(call, started, thrown);
  } finally {
    if (left) logFailure(call, started, new LanceError("Cancelled", "the client left the answer"));
  }
}

function logEnd(call: Call, started: number): void {
  call.outcome = "OK";
  if (call.log.isLevelEnabled("debug")) call.log.debug(fields(call, started), "call");
}

function logFailure(call: Call, started: number, thrown: unknown): LanceError {
  const error = failureOf(call, thrown);
  call.outcome = error.kind;
  const entry = { ...fields(call, started), code: error.entry.name, error: error.message };
  if (error.is("Internal") || error.is("DataLoss"))
    call.log.error({ ...entry, err: error.cause ?? error }, "call failed");
  else if (error.is("ServiceUnavailable") || error.is("OutcomeUnknown"))
    call.log.warn({ ...entry, err: error.cause }, "call failed");
  else call.log.debug(entry, "call refused");
  return error;
}

/** Returns the reason of an abort; the error that an aborted call throws only repeats it with less detail. */
export function failureOf(call: Call, thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  return endErrorOf(call) ?? toLanceError(thrown);
}

function fields(call: Call, started: number): Record<string, unknown> {
  return {
    [OF_CALL]: call,
    requestId: call.requestId,
    traceId: parseTraceParent(call.headers["traceparent"])?.traceId,
    operation: call.method.name,
    protocol: call.protocol,
    ...(call.database !== undefined && { database: call.database }),
    id: joinIdentifier(call.id),
    ...(call.principal !== undefined && { principal: call.principal.name, key: call.principal.credentialId }),
    ...(call.decisions.length > 0 && { upstream: call.decisions }),
    ms: Math.round((performance.now() - started) * 1000) / 1000,
  };
}
