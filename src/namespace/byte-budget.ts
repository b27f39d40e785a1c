import { type SharedQuantity, UNSHARED } from "../runtime/sharing.ts";
import { LanceError } from "./errors.ts";

/** Default size limit of a JSON body and of a single message of the other protocols, in bytes: 16 MiB. */
export const DEFAULT_MAX_MESSAGE_BYTES = 16 * 2 ** 20;

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
   */
  open(freeBytes?: number): ByteHold;
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
  /** Returns bytes; without a number, all of them. */
  release(bytes?: number): void;
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
    return this.#refuse(bytes, this.#maxBytes);
  }

  /** Adds bytes; returns false, and adds nothing, if the budget does not have them. */
  add(bytes: number): boolean {
    if (bytes === 0) return true;
    this.#hold(this.held + bytes);
    // Two workers that take the last bytes see each other's, because both publish before they look.
    if (bytes < 0 || this.held + this.#shared.others <= this.#maxBytes) return true;
    this.#hold(this.held - bytes);
    return false;
  }

  #hold(bytes: number): void {
    this.held = bytes;
    this.#shared.publish(bytes);
  }

  open(freeBytes = 0): ByteHold {
    return new Hold(this, freeBytes);
  }
}

/** A class, because every call opens a hold. */
class Hold implements ByteHold {
  readonly #budget: Budget;
  readonly #freeBytes: number;
  #bytes = 0;

  constructor(budget: Budget, freeBytes: number) {
    this.#budget = budget;
    this.#freeBytes = freeBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): void {
    const counted = this.#counted(this.#bytes + bytes) - this.#counted(this.#bytes);
    if (!this.#budget.add(counted)) throw this.#budget.refusal(this.#counted(this.#bytes + bytes));
    this.#bytes += bytes;
  }

  release(bytes: number = this.#bytes): void {
    const left = Math.max(0, this.#bytes - bytes);
    this.#budget.add(this.#counted(left) - this.#counted(this.#bytes));
    this.#bytes = left;
  }

  #counted(bytes: number): number {
    return Math.max(0, bytes - this.#freeBytes);
  }
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
