import { endingOf } from "../../namespace/call/call.ts";
import type { UpstreamDecision } from "../../namespace/figures.ts";
import type { Ending } from "../../runtime/time/late-signal.ts";
import { traced } from "../../runtime/tracing.ts";
import type { Address } from "./address.ts";
import { Addresses } from "./addresses.ts";
import { hedge } from "./hedge.ts";
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
import { Budget, Delays, wait } from "./retries.ts";

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
