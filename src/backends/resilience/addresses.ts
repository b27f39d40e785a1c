import { Address, type AddressOptions } from "./address.ts";
import type { Endpoint, Repeatable } from "./resilience.ts";

/** Fewest calls from which the failure rate of an address is judged. */
const MIN_CALLS = 10;
/** How far the rate must exceed that of all others: by this difference, and by this factor. */
const MIN_DIFFERENCE = 0.2;
const MIN_RATIO = 2;

/** Rank of an address for the next call; the smallest is taken. */
const RANK = { probe: 0, good: 1, avoided: 2, ejected: 3, lastProbe: 4, none: 5 } as const;

/** The addresses of an upstream; it chooses the address of the next call. */
export class Addresses<T> {
  readonly #options: AddressOptions<T>;
  #all: readonly Address<T>[] = [];
  #turn = 0;

  constructor(endpoints: readonly Endpoint<T>[], options: Omit<AddressOptions<T>, "ejectOutlier">) {
    this.#options = { ...options, ejectOutlier: (address) => this.#ejectOutlier(address) };
    this.replace(endpoints);
  }

  replace(endpoints: readonly Endpoint<T>[]): void {
    const before = new Map(this.#all.map((address) => [address.target, address]));
    this.#all = endpoints.map(
      (endpoint) => before.get(endpoint.target) ?? new Address(endpoint, this.#options),
    );
  }

  /**
   * Returns the address for a call: a working address with the fewest calls in flight, in turn. An address that must
   * prove that it is back gets a call that could be retried.
   *
   * @param avoid an address that has just failed
   * @returns undefined, if no address may be called
   */
  pick(repeatable: Repeatable, avoid?: Address<T>): Address<T> | undefined {
    const [only] = this.#all;
    if (this.#all.length === 1) return only?.circuit.isClosed || only?.circuit.isProbeDue ? only : undefined;
    // A second choice leaves the turn to other calls; otherwise, with two addresses, all calls would start at the
    // same one.
    if (avoid === undefined) this.#turn += 1;
    let best: Address<T> | undefined;
    let bestRank: number = RANK.none;
    for (let step = 0; step < this.#all.length; step += 1) {
      const address = this.#all[(this.#turn + step) % this.#all.length] as Address<T>;
      const rank = rankOf(address, repeatable, avoid);
      if (rank > bestRank || rank === RANK.none) continue;
      if (rank === bestRank && best !== undefined && best.pending <= address.pending) continue;
      best = address;
      bestRank = rank;
    }
    return best;
  }

  /** Time until the first address may be called again, in milliseconds. */
  get closedForMs(): number {
    return Math.min(...this.#all.map(({ circuit }) => circuit.closedForMs));
  }

  /**
   * Ejects an address that fails far more often than the others, unless half of all are ejected.
   *
   * @returns whether it did.
   */
  #ejectOutlier(address: Address<T>): boolean {
    if (this.#all.length < 2 || address.isEjected || address.errors.calls < MIN_CALLS) return false;
    const others = this.#all.filter((other) => other !== address);
    const away = others.filter((other) => other.isEjected || !other.circuit.isClosed).length;
    if (away + 1 > this.#all.length / 2) return false;
    const usual = others.reduce((sum, { errors }) => sum + errors.share, 0) / others.length;
    const { share } = address.errors;
    if (share - usual < MIN_DIFFERENCE || share < usual * MIN_RATIO) return false;
    address.eject();
    return true;
  }
}

function rankOf<T>(address: Address<T>, repeatable: Repeatable, avoid: Address<T> | undefined): number {
  const { circuit } = address;
  if (circuit.isClosed) {
    if (address.isEjected) return RANK.ejected;
    return address === avoid ? RANK.avoided : RANK.good;
  }
  if (!circuit.isProbeDue) return RANK.none;
  return repeatable === "unsent" ? RANK.lastProbe : RANK.probe;
}
