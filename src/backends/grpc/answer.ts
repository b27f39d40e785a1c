import type { EventEmitter } from "node:events";
import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { upstreamError } from "./errors.ts";
import { Patience } from "./patience.ts";

/** Takes the answer of a call from grpc-js. */
export type Done = (error: Error | null, answer?: Message) => void;

/** A call in flight. */
interface Running extends EventEmitter {
  cancel(): void;
}

/** Context for awaiting a call with a single answer. */
export interface PendingCall {
  readonly call: Call;
  /** Ends this attempt of the call. */
  readonly signal: AbortSignal;
  /** End of the gateway's own limit for the call, in epoch milliseconds. Default: no limit. */
  readonly endsAt?: number | undefined;
  /** Whether the call has a body that can be read only once. Default: false. */
  readonly bodySent?: boolean;
}

/**
 * Starts a call with a single answer and waits for it, or for the end of the client's call.
 *
 * The promise is rejected with a LanceError with its `fault`, or with the reason of the signal.
 */
export function answerOf(
  { call, signal, endsAt, bodySent = false }: PendingCall,
  begin: (done: Done, patience: Patience) => Running,
): Promise<Message> {
  // A caller that has taken a place for the call returns it when the promise ends.
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    let begun = false;
    let running: Running | undefined;
    const cancel = () => running?.cancel();
    const patience = new Patience(cancel);
    const done: Done = (error, answer) => {
      signal.removeEventListener("abort", cancel);
      patience.rest();
      if (error === null) resolve(answer as Message);
      else if (signal.aborted) reject(signal.reason);
      else
        reject(patience.reason ?? ownLimit(call, endsAt) ?? upstreamError(error, call, { begun, bodySent }));
    };
    try {
      running = begin(done, patience);
    } catch (thrown) {
      // The channel was just closed, because its server is gone.
      patience.rest();
      throw new LanceError("ServiceUnavailable", "the upstream catalog cannot be reached", {
        cause: thrown,
        fault: "unreached",
      });
    }
    running.once("metadata", () => {
      begun = true;
    });
    signal.addEventListener("abort", cancel);
  });
}

/** Returns the error if the gateway's own limit has ended the call, and not its client's deadline. */
function ownLimit({ deadline }: Call, endsAt: number | undefined): LanceError | undefined {
  if (endsAt === undefined || Date.now() < endsAt || (deadline !== undefined && deadline <= endsAt)) return;
  return new LanceError("DeadlineExceeded", "the upstream catalog did not answer in time", {
    fault: "silent",
  });
}
