/** Sender of pieces, which the queue can pause. */
export interface PieceSource {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

/** Receives what the reader does. */
export interface PieceReader {
  /** The reader leaves before the end. */
  onLeave(): void;
  /** The reader requests more, after it got this piece. */
  onDone(piece: Uint8Array): void;
}

/** Number of queued bytes from which on the sender is paused. */
const HIGH_WATER_BYTES = 256 * 1024;

/** The pieces of a body between the connection and its only reader. */
export class PieceQueue implements AsyncIterableIterator<Uint8Array> {
  readonly #source: PieceSource;
  readonly #reader: PieceReader;
  readonly #pieces: Uint8Array[] = [];
  #size = 0;
  #paused = false;
  #over = false;
  #failure: { readonly reason: unknown } | undefined;
  #waiting: PromiseWithResolvers<IteratorResult<Uint8Array>> | undefined;
  #given: Uint8Array | undefined;

  constructor(source: PieceSource, reader: PieceReader) {
    this.#source = source;
    this.#reader = reader;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(piece: Uint8Array): void {
    if (this.#over) return;
    if (this.#waiting !== undefined) {
      this.#take()?.resolve(this.#give(piece));
      return;
    }
    this.#pieces.push(piece);
    this.#size += piece.byteLength;
    if (this.#size < HIGH_WATER_BYTES || this.#paused) return;
    this.#paused = true;
    this.#source.pause();
  }

  end(): void {
    this.#over = true;
    this.#take()?.resolve({ done: true, value: undefined });
  }

  /** Discards what has arrived, because the reader must not mistake it for the whole. */
  fail(reason: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure = { reason };
    this.#pieces.length = 0;
    this.#take()?.reject(reason);
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#given !== undefined) this.#reader.onDone(this.#given);
    const piece = this.#pieces.shift();
    if (piece !== undefined) {
      this.#size -= piece.byteLength;
      if (this.#paused && this.#size < HIGH_WATER_BYTES / 2) {
        this.#paused = false;
        this.#source.resume();
      }
      return Promise.resolve(this.#give(piece));
    }
    if (this.#failure !== undefined) {
      const { reason } = this.#failure;
      this.#failure = undefined;
      return Promise.reject(reason);
    }
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#over) {
      this.#over = true;
      this.#pieces.length = 0;
      this.#reader.onLeave();
      this.#source.abort(new Error("the reader of the answer has left"));
    }
    this.#take()?.resolve({ done: true, value: undefined });
    return Promise.resolve({ done: true, value: undefined });
  }

  #give(piece: Uint8Array): IteratorYieldResult<Uint8Array> {
    this.#given = piece;
    return { done: false, value: piece };
  }

  #take(): PromiseWithResolvers<IteratorResult<Uint8Array>> | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}
