import { Duplex } from "node:stream";
import { type buildConnector, errors } from "../../../runtime/internals/undici.ts";

/**
 * A connection for undici to read an answer whose request was already sent. It drops the bytes that undici writes, and holds the answer
 * back until then, because undici takes bytes in front of a request for a broken connection.
 */
export class SentConnection extends Duplex {
  readonly #onDestroy: () => void;
  #held: (Buffer | null)[] | undefined = [];

  constructor(onDestroy: () => void) {
    super();
    this.#onDestroy = onDestroy;
  }

  /** Gives undici this connection, once, in a later step as it expects. */
  readonly connect: buildConnector.connector = (_where, opened) => {
    queueMicrotask(() => {
      if (this.destroyed) opened(new errors.SocketError("the connection was closed"), null);
      else opened(null, this as never);
    });
  };

  /** Adds a piece of the answer; null is its end. */
  add(piece: Buffer | null): void {
    if (this.#held === undefined) this.push(piece);
    else this.#held.push(piece);
  }

  override _read(): void {}

  override _write(_piece: unknown, _encoding: string, done: () => void): void {
    // The request counts as sent only when undici's own write has returned.
    if (this.#held !== undefined) queueMicrotask(() => this.#release());
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#onDestroy();
    done(error);
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const piece of held) this.push(piece);
  }
}
