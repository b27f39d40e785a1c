/** A request whose body is still arriving, so that it can be ended. */
export interface Unfinished {
  /** Ends it, and returns its bytes at once. */
  cut(): void;
}

interface Sender {
  bytes: number;
  /** The oldest first. */
  readonly unfinished: Set<Unfinished>;
}

/** The bytes that requests hold, by their senders. */
export class Senders {
  readonly #senders = new Map<string, Sender>();

  /** Adds bytes of a sender, or subtracts negative ones. */
  add(name: string, bytes: number): void {
    const sender = this.#sender(name);
    sender.bytes += bytes;
    this.#forget(name, sender);
  }

  /** Returns how many bytes a sender holds. */
  bytesOf(name: string): number {
    return this.#senders.get(name)?.bytes ?? 0;
  }

  begin(name: string, request: Unfinished): void {
    this.#sender(name).unfinished.add(request);
  }

  finish(name: string, request: Unfinished): void {
    const sender = this.#senders.get(name);
    if (sender?.unfinished.delete(request)) this.#forget(name, sender);
  }

  /**
   * Returns the oldest unfinished request of the sender that holds the most bytes among those with such requests; undefined if none of them
   * holds more than a number of bytes.
   */
  oldestBeyond(bytes: number): Unfinished | undefined {
    let largest: Sender | undefined;
    for (const sender of this.#senders.values())
      if (sender.bytes > (largest?.bytes ?? bytes) && sender.unfinished.size > 0) largest = sender;
    return largest?.unfinished.values().next().value;
  }

  #sender(name: string): Sender {
    let sender = this.#senders.get(name);
    if (sender === undefined) {
      sender = { bytes: 0, unfinished: new Set() };
      this.#senders.set(name, sender);
    }
    return sender;
  }

  #forget(name: string, { bytes, unfinished }: Sender): void {
    if (bytes <= 0 && unfinished.size === 0) this.#senders.delete(name);
  }
}
