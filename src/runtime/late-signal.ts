/** The part of an abort signal by which work learns that it has to end. Every `AbortSignal` is one. */
export interface Ending {
  readonly aborted: boolean;
  /** Why it has to end. */
  readonly reason: unknown;
  /** The ending as a signal, if it is not one itself. */
  readonly signal?: AbortSignal;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * An ending whose `AbortSignal` is made when something asks for it. Most calls end by themselves, and a signal that gets a listener and
 * loses it again costs more than this (docs/adr/0028).
 */
export class LateSignal implements Ending {
  #aborted = false;
  #reason: unknown;
  /** The usual single listener. */
  #listener: (() => void) | undefined;
  #others: (() => void)[] | undefined;
  #controller: AbortController | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** This ending as a signal, for work that needs one. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Adds a listener, which is called at most once. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#listener === undefined) this.#listener = listener;
    else if (this.#others === undefined) this.#others = [listener];
    else this.#others.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others = this.#others?.filter((other) => other !== listener);
  }

  /** Ends the work; only the first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    const listeners = [this.#listener, ...(this.#others ?? [])];
    this.#listener = this.#others = undefined;
    for (const listener of listeners) listener?.();
  }
}

/** Returns the signal of an ending, for work that needs one. */
export function signalOf(ending: Ending): AbortSignal {
  return ending.signal ?? (ending as AbortSignal);
}
