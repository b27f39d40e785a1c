import { type SharedQuantity, UNSHARED } from "../../runtime/threads/sharing.ts";
import { LanceError } from "../errors.ts";
import { Senders, type Unfinished } from "./senders.ts";

/** Default size limit of a JSON body and of a single message of the other protocols, in bytes: 16 MiB. */
export const DEFAULT_MAX_MESSAGE_BYTES = 16 * 2 ** 20;

/**
 * Part of a budget that is divided among the workers of a process. A worker ends only its own requests for want of room, so the requests that
 * fill the rest in another worker must leave it something.
 */
const OWN_PART = 1 / 4;

/** The bytes that requests, or answers of upstreams, may hold in memory together, over all calls and connections of a process. */
export interface ByteBudget {
  /** Bytes that this worker holds now. */
  readonly held: number;
  /** Sets the bound, in bytes; what is held beyond it stays until it is released. */
  resize(maxBytes: number | undefined): void;
  /**
   * Opens an account that holds nothing yet.
   *
   * @param freeBytes number of bytes that the account may hold without being counted. Default: 0.
   * @param sender the caller that the bytes belong to. Default: not known, or until {@link ByteHold.arrive} not yet.
   */
  open(freeBytes?: number, sender?: string): ByteHold;
}

/** The bytes of a {@link ByteBudget} that a call holds. */
export interface ByteHold {
  /** Bytes that it holds. */
  readonly bytes: number;
  /**
   * Takes bytes that are about to be kept.
   *
   * @throws LanceError the budget's refusal, if it does not have them; it then takes nothing.
   */
  take(bytes: number): void;
  /** Returns bytes; without a number, all of them, after which nothing ends the request. */
  release(bytes?: number): void;
  /**
   * Tells that the body of a request is arriving, at the speed of its client. Until {@link arrived}, the budget ends the request when a sender
   * that holds less needs its room. It returns the bytes of the request itself, and refuses more.
   *
   * @param senderOf returns the caller that the bytes belong to; called when there are bytes that count. Default: the account knows it.
   * @param end ends the request with an error, in a later microtask.
   */
  arrive(senderOf: (() => string) | undefined, end: (error: LanceError) => void): void;
  /** Tells that the gateway does not wait for the client now. */
  arrived(): void;
}

/**
 * Creates a budget.
 *
 * @param maxBytes Default: no bound.
 * @param shared bytes that the workers of the process hold. Default: there is a single worker.
 * @param refuse creates the error for bytes beyond the bound. Default: PayloadTooLarge for a request that does not fit alone, and Throttling
 *   with `retry-after` for any other.
 */
export function createByteBudget(
  maxBytes: number = Number.POSITIVE_INFINITY,
  shared: SharedQuantity = UNSHARED,
  refuse: Refuse = exhausted,
): ByteBudget {
  return new Budget(maxBytes, shared, refuse);
}

/** Creates the error for the bytes that a hold would have, given the bound of the budget. */
type Refuse = (bytes: number, maxBytes: number) => LanceError;

class Budget implements ByteBudget {
  #maxBytes: number;
  readonly #shared: SharedQuantity;
  readonly #refuse: Refuse;
  readonly senders = new Senders();
  held = 0;

  constructor(maxBytes: number, shared: SharedQuantity, refuse: Refuse) {
    this.#maxBytes = maxBytes;
    this.#shared = shared;
    this.#refuse = refuse;
  }

  resize(maxBytes: number = Number.POSITIVE_INFINITY): void {
    this.#maxBytes = maxBytes;
  }

  /** Returns the error for a hold that would have a number of counted bytes. */
  refusal(bytes: number): LanceError {
    return this.#refuse(bytes, this.#most);
  }

  /** Adds bytes; returns false, and adds nothing, if the budget does not have them. */
  add(bytes: number): boolean {
    if (bytes === 0) return true;
    this.#hold(this.held + bytes);
    // Two workers that take the last bytes see each other's, because both publish before they look.
    if (bytes < 0 || this.held <= this.#own || this.held + this.#shared.others <= this.#most) return true;
    this.#hold(this.held - bytes);
    return false;
  }

  #hold(bytes: number): void {
    this.held = bytes;
    this.#shared.publish(this.#beyondOwn());
  }

  /** Bytes that belong to this worker alone: the others leave them free. */
  get #own(): number {
    const { workers } = this.#shared;
    return workers === 1 ? 0 : (this.#maxBytes * OWN_PART) / workers;
  }

  /** Bytes that this worker holds of those that the workers have in common. */
  #beyondOwn(): number {
    return Math.max(0, this.held - this.#own);
  }

  /** The most bytes that this worker may hold, if no other one holds more than its own. */
  get #most(): number {
    return this.#maxBytes - (this.#shared.workers - 1) * this.#own;
  }

  /**
   * Adds bytes, and ends unfinished requests until there is room for them: those of the sender that holds the most, while it holds more than
   * the one that needs the room would.
   *
   * @param all bytes that the one that needs them would hold
   */
  addForced(bytes: number, all: number): boolean {
    while (!this.add(bytes)) {
      const request = this.senders.oldestBeyond(all);
      if (request === undefined) return false;
      request.cut();
    }
    return true;
  }

  /** Whether a number of bytes fits if nobody else holds any. */
  fitsAlone(bytes: number): boolean {
    return bytes <= this.#most;
  }

  open(freeBytes = 0, sender?: string): ByteHold {
    return new Hold(this, freeBytes, sender);
  }
}

/** A class, because every call opens a hold. */
class Hold implements ByteHold, Unfinished {
  readonly #budget: Budget;
  readonly #freeBytes: number;
  #bytes = 0;
  /** The caller that the bytes belong to. Default: not known before there are bytes that count. */
  #sender: string | undefined;
  #senderOf: (() => string) | undefined;
  /** Ends the request while its body arrives. */
  #end: ((error: LanceError) => void) | undefined;
  #ended: LanceError | undefined;

  constructor(budget: Budget, freeBytes: number, sender: string | undefined) {
    this.#budget = budget;
    this.#freeBytes = freeBytes;
    this.#sender = sender;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): void {
    if (this.#ended !== undefined) throw this.#ended;
    const [before, after] = [this.#counted(this.#bytes), this.#counted(this.#bytes + bytes)];
    if (after > before) this.#admit(after - before, after);
    this.#bytes += bytes;
  }

  release(bytes?: number): void {
    if (bytes === undefined) this.arrived();
    const left = Math.max(0, this.#bytes - (bytes ?? this.#bytes));
    this.#add(this.#counted(left) - this.#counted(this.#bytes));
    this.#bytes = left;
  }

  arrive(senderOf: (() => string) | undefined, end: (error: LanceError) => void): void {
    this.#senderOf = senderOf;
    this.#end = end;
    if (this.#counted(this.#bytes) > 0) this.#enlist();
  }

  arrived(): void {
    if (this.#end === undefined) return;
    this.#end = undefined;
    if (this.#sender !== undefined) this.#budget.senders.finish(this.#sender, this);
  }

  cut(): void {
    const end = this.#end;
    const error = outweighed();
    this.#ended = error;
    this.release();
    // Another request than this one is running.
    queueMicrotask(() => end?.(error));
  }

  #admit(more: number, all: number): void {
    this.#identify();
    const budget = this.#budget;
    const ofSender = this.#sender === undefined ? all : budget.senders.bytesOf(this.#sender) + more;
    const isAdded = budget.fitsAlone(all) ? budget.addForced(more, ofSender) : budget.add(more);
    if (!isAdded) throw budget.refusal(all);
    if (this.#sender === undefined) return;
    budget.senders.add(this.#sender, more);
    if (this.#end !== undefined) this.#enlist();
  }

  #enlist(): void {
    this.#identify();
    if (this.#sender !== undefined) this.#budget.senders.begin(this.#sender, this);
  }

  /** The bytes before the sender was known are the sender's, too. */
  #identify(): void {
    if (this.#sender !== undefined || this.#senderOf === undefined) return;
    this.#sender = this.#senderOf();
    this.#budget.senders.add(this.#sender, this.#counted(this.#bytes));
  }

  #add(counted: number): void {
    if (counted === 0) return;
    this.#budget.add(counted);
    if (this.#sender !== undefined) this.#budget.senders.add(this.#sender, counted);
  }

  #counted(bytes: number): number {
    return Math.max(0, bytes - this.#freeBytes);
  }
}

function outweighed(): LanceError {
  const message = "the request arrives while others need its memory, and its sender holds the most of it";
  return new LanceError("Throttling", message, { headers: { "retry-after": "1" }, limit: "memory" });
}

function exhausted(bytes: number, maxBytes: number): LanceError {
  // A client would repeat such a request for ever.
  if (bytes > maxBytes) return tooLargeAlone(`all requests together may use ${maxBytes} bytes`);
  return new LanceError("Throttling", "request memory limit exceeded by the requests in flight", {
    headers: { "retry-after": "1" },
    limit: "memory",
  });
}

/** Returns the error for a request that does not fit into the memory that it could have alone. @param bound the memory, as a clause */
export function tooLargeAlone(bound: string): LanceError {
  return new LanceError("PayloadTooLarge", `the request exceeds its memory limit: ${bound}`, {
    limit: "memory",
  });
}
