import type { DescMethod, DescMethodServerStreaming, Message } from "@bufbuild/protobuf";
import { bodyFieldOf } from "../namespace/body-field.ts";
import type { Call } from "../namespace/call.ts";
import { type ErrorName, toLanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";

/** How a call ended: well, or with a row of the error table. */
export type Outcome = "OK" | ErrorName;

/** What is told of every call; whoever counts must be quick about it. */
export interface CallMetrics {
  began(): void;
  /**
   * A call is over, with all that the pipeline has settled about it.
   *
   * @param seconds from the whole request, or the parameters of an upload, to the end of the answer
   * @param bytes of the Arrow body that came or went; 0 for calls without one
   */
  ended(call: Call, outcome: Outcome, seconds: number, bytes: number): void;
}

/** Tells of every call of a service, those that it refuses included. */
export function measure(service: Service, metrics: CallMetrics): Service {
  const bodies = new Map<DescMethod, string | undefined>();

  async function measured(
    call: Call,
    run: () => Promise<Message>,
    bytes: () => number = none,
  ): Promise<Message> {
    metrics.began();
    const started = performance.now();
    let outcome: Outcome = "OK";
    try {
      return await run();
    } catch (thrown) {
      outcome = toLanceError(thrown).kind;
      throw thrown;
    } finally {
      metrics.ended(call, outcome, secondsSince(started), bytes());
    }
  }

  function bodyField(method: DescMethodServerStreaming): string | undefined {
    if (!bodies.has(method)) bodies.set(method, bodyFieldOf(method.output));
    return bodies.get(method);
  }

  return {
    unary: (method, request, call) => measured(call, () => service.unary(method, request, call)),

    upload(method, request, data, call) {
      let bytes = 0;
      async function* counted() {
        for await (const piece of data) {
          bytes += piece.byteLength;
          yield piece;
        }
      }
      return measured(
        call,
        () => service.upload(method, request, counted(), call),
        () => bytes,
      );
    },

    async *download(method, request, call) {
      const field = bodyField(method);
      metrics.began();
      const started = performance.now();
      // A reader that leaves ends this without a word.
      let outcome: Outcome = "Cancelled";
      let bytes = 0;
      try {
        for await (const message of service.download(method, request, call)) {
          bytes += bodySize(message, field);
          yield message;
        }
        outcome = "OK";
      } catch (thrown) {
        outcome = toLanceError(thrown).kind;
        throw thrown;
      } finally {
        metrics.ended(call, outcome, secondsSince(started), bytes);
      }
    },
  };
}

function bodySize(message: Message, field = ""): number {
  return (message as Message & Record<string, { data: Uint8Array } | undefined>)[field]?.data.byteLength ?? 0;
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}

function none(): number {
  return 0;
}
