import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type Call, endErrorOf, OF_CALL } from "../../namespace/call/call.ts";
import { parseTraceParent } from "../../namespace/call/headers.ts";
import { type ErrorName, LanceError, type LimitName, toLanceError } from "../../namespace/errors.ts";
import { joinIdentifier } from "../../namespace/identifier.ts";
import { bodyFieldOf } from "../../namespace/operations/method-facts.ts";
import { type Interceptor, isStream } from "../call/interceptor.ts";

/** Outcome of a call: success, or a row of the error table. */
export type Outcome = "OK" | ErrorName;

/** Receives the start and the end of every call; its functions must be fast. */
export interface CallMetrics {
  began(): void;
  /**
   * Reports that a call is over, with everything that the pipeline has determined about it.
   *
   * @param seconds from the whole request, or the parameters of an upload, to the end of the answer
   * @param bytes of the Arrow body, received or sent; 0 for calls without one
   * @param limit that the call has met. Default: none.
   */
  ended(call: Call, outcome: Outcome, seconds: number, bytes: number, limit?: LimitName): void;
}

/** A call in flight. */
interface Observed {
  readonly call: Call;
  readonly started: number;
  /** Bytes of its Arrow body until now. */
  bytes: number;
}

/**
 * Logs how each call ends, and reports its start and end, also of calls that a later interceptor refuses; every failure
 * leaves it as a LanceError. A download ends with its stream. A single step for log and metrics, because each one that
 * waits for the rest of the pipeline costs a call a promise and its turns.
 *
 * @param metrics Default: nothing counts the calls.
 */
export function observe(metrics?: CallMetrics): Interceptor {
  const bodies = new Map<DescMethod, string | undefined>();

  function bodyField(method: DescMethod): string | undefined {
    if (!bodies.has(method)) bodies.set(method, bodyFieldOf(method.output));
    return bodies.get(method);
  }

  function succeed({ call, started, bytes }: Observed): void {
    call.outcome = "OK";
    const ms = performance.now() - started;
    if (call.log.isLevelEnabled("debug")) call.log.debug(fields(call, ms), "call");
    metrics?.ended(call, "OK", ms / 1000, bytes);
  }

  function fail({ call, started, bytes }: Observed, thrown: unknown): LanceError {
    const error = failureOf(call, thrown);
    call.outcome = error.kind;
    const ms = performance.now() - started;
    logFailure(call, error, ms);
    metrics?.ended(call, error.kind, ms / 1000, bytes, error.limit);
    return error;
  }

  async function* received(data: AsyncIterable<Uint8Array>, observed: Observed) {
    for await (const piece of data) {
      observed.bytes += piece.byteLength;
      yield piece;
    }
  }

  async function* sent(messages: AsyncIterable<Message>, observed: Observed): AsyncIterable<never> {
    const field = bodyField(observed.call.method);
    let left = true;
    try {
      for await (const message of messages) {
        observed.bytes += bodySize(message, field);
        yield message as never;
      }
      left = false;
      succeed(observed);
    } catch (thrown) {
      left = false;
      throw fail(observed, thrown);
    } finally {
      // A reader that leaves ends this generator without an error.
      if (left)
        fail(observed, new LanceError("Cancelled", "the client disconnected while reading the response"));
    }
  }

  return async (call, request, next) => {
    metrics?.began();
    const observed: Observed = { call, started: performance.now(), bytes: 0 };
    try {
      const isUpload = request.kind === "upload";
      const passed = isUpload ? { ...request, data: received(request.data, observed) } : request;
      const response = await next(call, passed);
      if (isStream(response)) return sent(response, observed);
      succeed(observed);
      return response;
    } catch (thrown) {
      throw fail(observed, thrown);
    }
  };
}

/** Returns the reason of an abort; the error that an aborted call throws only repeats it with less detail. */
export function failureOf(call: Call, thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  return endErrorOf(call) ?? toLanceError(thrown);
}

function bodySize(message: Message, field = ""): number {
  return (message as Message & Record<string, { data: Uint8Array } | undefined>)[field]?.data.byteLength ?? 0;
}

function logFailure(call: Call, error: LanceError, ms: number): void {
  const entry = { ...fields(call, ms), code: error.entry.name, error: error.message };
  if (error.is("Internal") || error.is("DataLoss"))
    call.log.error({ ...entry, err: error.cause ?? error }, "call failed");
  else if (error.is("ServiceUnavailable") || error.is("OutcomeUnknown"))
    call.log.warn({ ...entry, err: error.cause }, "call failed");
  else call.log.debug(entry, "call refused");
}

function fields(call: Call, ms: number): Record<string, unknown> {
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
    ms: Math.round(ms * 1000) / 1000,
  };
}
