import { endingOf } from "../../namespace/call/call.ts";
import type { UpstreamDecision } from "../../namespace/figures.ts";
import type { Ending } from "../../runtime/late-signal.ts";
import { traced } from "../../runtime/tracing.ts";
import { Address, type AddressOptions } from "./address.ts";
import { Budget, Delays, hedge, wait } from "./attempts.ts";
import {
  type Attempt,
  type Endpoint,
  healthOf,
  mayRepeat,
  type Notes,
  type Repeatable,
  type Resilience,
  type ResilienceOptions,
  type ResilientCall,
  refusal,
  withOutcome,
} from "./resilience.ts";

const nobody = () => {};

/**
 * Creates the resilience of an upstream's calls.
 *
 * @param endpoints its addresses, at least one
 */
export function createResilience<T>(
  endpoints: readonly Endpoint<T>[],
  options: ResilienceOptions,
): Resilience<T> {
  const { retries = 2, retryShare = 0.2, backoffMs = 50, maxBackoffMs = 5_000 } = options;
  const { hedgeAfterMs = 0, totalMs = 0, noteDecision = nobody, log } = options;
  const { circuitFailures = 10, circuitOpenMs = 1_000, ejectMs = 10_000, silenceMs = 5_000 } = options;
  const budget = new Budget(retryShare);
  const shared = { circuitFailures, circuitOpenMs, ejectMs, silenceMs, log, noteDecision };
  const addresses = new Addresses(endpoints, shared);

  /** A call with its context. */
  interface Running<R> {
    readonly call: ResilientCall;
    readonly repeatable: Repeatable;
    readonly attempt: Attempt<T, R>;
    readonly startedAt: number;
  }

  function once<R>(address: Address<T>, running: Running<R>): Promise<R> {
    const { call, repeatable } = running;
    if (hedgeAfterMs === 0 || repeatable !== "parallel") return at(address, running, endingOf(call));
    let isOver = false;
    // The loser ends after its call has been counted.
    const notes = {
      note: (decision: UpstreamDecision) => (isOver ? noteDecision(decision) : call.note(decision)),
    };
    return hedge({
      signal: endingOf(call),
      afterMs: hedgeAfterMs,
      first: (signal) => at(address, running, signal, notes),
      second() {
        const other = addresses.pick(repeatable, address);
        if (other === undefined) return undefined;
        if (!budget.take()) {
          call.note("retry_refused_by_budget");
          return undefined;
        }
        call.note("hedge");
        return (signal) => at(other, running, signal, notes);
      },
      isAnswer: (error) => healthOf(error) === "working" && !mayRepeat(error, repeatable),
      onWon: () => call.note("hedge_won"),
    }).finally(() => {
      isOver = true;
    });
  }

  /** Makes an attempt at an address. @param notes takes note of decisions. Default: the call. */
  function at<R>(
    place: Address<T>,
    running: Running<R>,
    signal: Ending,
    notes: Notes = running.call,
  ): Promise<R> {
    const make = (target: T, onSent: () => void) =>
      running.attempt(target, signal, { elapsedMs: elapsedOf(running), onSent });
    return traced("upstream", { "server.address": place.name }, () => place.run(notes, make), "client");
  }

  function elapsedOf({ startedAt }: Running<unknown>): number {
    // Without a limit the time is not needed.
    return totalMs === 0 ? 0 : Date.now() - startedAt;
  }

  /** Whether a retry after this delay, in milliseconds, still has time. */
  function hasTime({ call, startedAt }: Running<unknown>, delay: number): boolean {
    const at = Date.now() + delay;
    return (call.deadline === undefined || at < call.deadline) && (totalMs === 0 || at < startedAt + totalMs);
  }

  /** Continues after the first failure. */
  async function again<R>(failed: Address<T>, failure: unknown, running: Running<R>): Promise<R> {
    const { call, repeatable } = running;
    let delays: Delays | undefined;
    let [last, error] = [failed, failure];
    for (let made = 0; made < retries && !endingOf(call).aborted; made += 1) {
      if (!mayRepeat(error, repeatable)) break;
      const other = addresses.pick(repeatable, last);
      // Another address has not asked for a delay.
      const atOnce = made === 0 && other !== last && error.fault !== "throttled";
      delays ??= new Delays(backoffMs, maxBackoffMs);
      const delay = atOnce ? 0 : delays.next(error);
      if (other === undefined || delay === undefined || !hasTime(running, delay)) break;
      if (!budget.take()) {
        call.note("retry_refused_by_budget");
        break;
      }
      if (!atOnce) await wait(delay, endingOf(call));
      const next = atOnce ? other : addresses.pick(repeatable, last);
      if (next === undefined) break;
      call.note("retry");
      try {
        return await once(next, running);
      } catch (thrown) {
        [last, error] = [next, thrown];
      }
    }
    throw error;
  }

  return {
    run(call, repeatable, attempt) {
      budget.earn();
      const address = addresses.pick(repeatable);
      if (address === undefined) return Promise.reject(refusal(call, addresses.closedForMs));
      const running = { call, repeatable, attempt, startedAt: Date.now() };
      return once(address, running).catch((error: unknown) =>
        withOutcome(repeatable, again(address, error, running)),
      );
    },
    replace: (all) => addresses.replace(all),
  };
}

/** Fewest calls from which the failure rate of an address is judged. */
const MIN_CALLS = 10;
/** How far the rate must exceed that of all others: by this difference, and by this factor. */
const MIN_DIFFERENCE = 0.2;
const MIN_RATIO = 2;

/** Rank of an address for the next call; the smallest is taken. */
const RANK = { probe: 0, good: 1, avoided: 2, ejected: 3, lastProbe: 4, none: 5 } as const;

/** The addresses of an upstream; it chooses the address of the next call. */
class Addresses<T> {
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
