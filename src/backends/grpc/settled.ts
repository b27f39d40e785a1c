import type { EventEmitter } from "node:events";
import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import { upstreamError } from "./errors.ts";
import { Patience } from "./patience.ts";

/** Takes the answer of a call, as grpc-js gives it. */
export type Done = (error: Error | null, answer?: Message) => void;

/** A call under way. */
interface Running extends EventEmitter {
  cancel(): void;
}

/** What a call with a single answer needs to be waited for. */
export interface Settling {
  readonly call: Call;
  /** Ends this attempt of it. */
  readonly signal: AbortSignal;
  /** Whether it has a body that can be read only once. Default: false. */
  readonly bodySent?: boolean;
}

/**
 * Begins a call with a single answer and waits for it, or for the end of our own call.
 *
 * @throws LanceError with its `fault`, or the reason of the signal
 */
export function settled(
  { call, signal, bodySent = false }: Settling,
  begin: (done: Done, patience: Patience) => Running,
): Promise<Message> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    let begun = false;
    const cancel = () => running.cancel();
    const patience = new Patience(cancel);
    const done: Done = (error, answer) => {
      signal.removeEventListener("abort", cancel);
      patience.rest();
      if (error === null) resolve(answer as Message);
      else if (signal.aborted) reject(signal.reason);
      else reject(patience.reason ?? upstreamError(error, call, { begun, bodySent }));
    };
    const running = begin(done, patience).once("metadata", () => {
      begun = true;
    }) as Running;
    signal.addEventListener("abort", cancel);
  });
}
