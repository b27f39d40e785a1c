import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Ending } from "../../runtime/late-signal.ts";
import { Patience } from "./channel/patience.ts";
import { unreached, upstreamError } from "./errors.ts";

/** A call in flight. */
export interface Running {
  cancel(): void;
}

/** Context for awaiting a call with a single answer. */
export interface PendingCall {
  readonly call: Call;
  /** Ends this attempt of the call. */
  readonly signal: Ending;
  /** End of the gateway's own limit for the call, in epoch milliseconds. Default: no limit. */
  readonly endsAt?: number | undefined;
  /** Whether the call has a body that can be read only once. Default: false. */
  readonly bodySent?: boolean;
  /** Called once, when the wait is over. */
  readonly onEnd: () => void;
}

/**
 * Starts a call with a single answer and waits for it, or for the end of the client's call.
 *
 * The promise is rejected with a LanceError with its `fault`, or with the reason of the signal.
 */
export function answerOf(pending: PendingCall, begin: (answer: PendingAnswer) => Running): Promise<Message> {
  return new Promise((resolve, reject) => {
    const answer = new PendingAnswer(pending, resolve, reject);
    try {
      if (pending.signal.aborted) answer.abandon(pending.signal.reason);
      else answer.running = begin(answer);
    } catch (thrown) {
      // The channel was just closed, because its server is gone.
      answer.abandon(unreached(thrown));
    }
  });
}

/**
 * The answer that a call waits for. Once it has come, it holds nothing of the call: the library's tables of calls keep
 * it from the collector for longer.
 */
export class PendingAnswer {
  readonly patience: Patience;
  /** The call, which the end of its client's call cancels. */
  running: Running | undefined;
  /** Whether the answer has started. */
  begun = false;
  #pending: PendingCall | undefined;
  #resolve: ((answer: Message) => void) | undefined;
  #reject: ((error: unknown) => void) | undefined;
  readonly #cancel = () => this.running?.cancel();

  constructor(pending: PendingCall, resolve: (answer: Message) => void, reject: (error: unknown) => void) {
    this.#pending = pending;
    this.#resolve = resolve;
    this.#reject = reject;
    this.patience = new Patience(this.#cancel);
    pending.signal.addEventListener("abort", this.#cancel);
  }

  /** Ends the wait with the answer. */
  done(answer: Message): void {
    const resolve = this.#resolve;
    this.#end();
    resolve?.(answer);
  }

  /** Ends the wait with what the library reports as a failure. */
  fail(error: unknown): void {
    if (this.#pending !== undefined) this.abandon(this.#reasonOf(error, this.#pending));
  }

  /** Ends the wait with an error. */
  abandon(error: unknown): void {
    const reject = this.#reject;
    this.#end();
    reject?.(error);
  }

  #reasonOf(error: unknown, { call, signal, endsAt, bodySent = false }: PendingCall): unknown {
    if (signal.aborted) return signal.reason;
    const { begun, patience } = this;
    return patience.reason ?? ownLimit(call, endsAt) ?? upstreamError(error, call, { begun, bodySent });
  }

  #end(): void {
    const pending = this.#pending;
    this.patience.rest();
    pending?.signal.removeEventListener("abort", this.#cancel);
    this.running = this.#pending = this.#resolve = this.#reject = undefined;
    pending?.onEnd();
  }
}

/** Returns the error if the gateway's own limit has ended the call, and not its client's deadline. */
function ownLimit({ deadline }: Call, endsAt: number | undefined): LanceError | undefined {
  if (endsAt === undefined || Date.now() < endsAt || (deadline !== undefined && deadline <= endsAt)) return;
  return new LanceError("DeadlineExceeded", "the upstream catalog did not answer in time", {
    fault: "silent",
  });
}
