import type { DescMethod, Message } from "@bufbuild/protobuf";
import { bodyFieldOf } from "../namespace/body-field.ts";
import type { Call } from "../namespace/call.ts";
import { type ErrorName, type LimitName, toLanceError } from "../namespace/errors.ts";
import { type Interceptor, isStream } from "./interceptor.ts";

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

/** Reports the start and the end of each call, including calls that a later interceptor refuses. */
export function measure(metrics: CallMetrics): Interceptor {
  const bodies = new Map<DescMethod, string | undefined>();

  function bodyField(method: DescMethod): string | undefined {
    if (!bodies.has(method)) bodies.set(method, bodyFieldOf(method.output));
    return bodies.get(method);
  }

  async function* measured(messages: AsyncIterable<Message>, call: Call, started: number) {
    const field = bodyField(call.method);
    // A reader that leaves ends this generator without an error.
    let outcome: Outcome = "Cancelled";
    let limit: LimitName | undefined;
    let bytes = 0;
    try {
      for await (const message of messages) {
        bytes += bodySize(message, field);
        yield message as never;
      }
      outcome = "OK";
    } catch (thrown) {
      ({ kind: outcome, limit } = toLanceError(thrown));
      throw thrown;
    } finally {
      metrics.ended(call, outcome, secondsSince(started), bytes, limit);
    }
  }

  return async (call, request, next) => {
    metrics.began();
    const started = performance.now();
    let bytes = 0;
    async function* counted(data: AsyncIterable<Uint8Array>) {
      for await (const piece of data) {
        bytes += piece.byteLength;
        yield piece;
      }
    }
    try {
      const passed = request.kind === "upload" ? { ...request, data: counted(request.data) } : request;
      const response = await next(call, passed);
      if (isStream(response)) return measured(response, call, started);
      metrics.ended(call, "OK", secondsSince(started), bytes);
      return response;
    } catch (thrown) {
      const { kind, limit } = toLanceError(thrown);
      metrics.ended(call, kind, secondsSince(started), bytes, limit);
      throw thrown;
    }
  };
}

function bodySize(message: Message, field = ""): number {
  return (message as Message & Record<string, { data: Uint8Array } | undefined>)[field]?.data.byteLength ?? 0;
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}
