import type { Dispatcher } from "undici";
import type { PieceSource } from "../bodies/piece-queue.ts";
import type { Receiver } from "../bodies/receiver.ts";

/** A request and the receiver of its answer. */
export class PlainExchange implements PieceSource {
  /** Whole request. */
  readonly text: string;
  /** The request in undici's form. */
  readonly options: Dispatcher.DispatchOptions;
  readonly receiver: Receiver;
  /** Ends the connection that has the request. Default: none has it. */
  cut: (() => void) | undefined;
  isAborted = false;

  constructor(text: string, options: Dispatcher.DispatchOptions, receiver: Receiver) {
    this.text = text;
    this.options = options;
    this.receiver = receiver;
  }

  abort(): void {
    this.isAborted = true;
    this.cut?.();
  }

  /** Answers that are collected do not pause. */
  pause(): void {}

  resume(): void {}
}
