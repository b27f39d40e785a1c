import { pino } from "pino";
import { vi } from "vitest";
import { LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { UpstreamDecision } from "../../namespace/figures/decisions.ts";
import type { Ending } from "../../runtime/late-signal.ts";
import { createResilience } from "./create-resilience.ts";
import type { ResilienceOptions } from "./options.ts";
import type { Progress, Repeatable } from "./resilience.ts";

/** Behaviour of an address: it answers, fails in some way, does not answer, or does not even receive the call. */
export type Behaviour = "answer" | "hang" | "queue" | UpstreamFault | LanceError;

/** Outcome of a call. */
export interface Outcome {
  /** Name of the address that answered, or the error. */
  readonly result: string | LanceError;
  readonly decisions: readonly UpstreamDecision[];
}

/** An upstream whose addresses behave as told, on a clock that the test moves. */
export interface FakeUpstream {
  /** Behaviour of each address. */
  readonly behaviours: Behaviour[];
  /** Number of calls that each address received. */
  readonly counts: number[];
  /** Addresses of the attempts that were ended from outside. */
  readonly ended: number[];
  /** Decisions that belonged to no call. */
  readonly noted: UpstreamDecision[];
  /** Ends the hanging calls with a fault. */
  fail(fault: UpstreamFault): void;
  /** Uses only these addresses from now on. */
  use(targets: readonly number[]): void;
  call(repeatable?: Repeatable, init?: { signal?: AbortSignal; deadline?: number }): Promise<Outcome>;
  /** Makes a number of calls, one after the other. */
  calls(times: number, repeatable?: Repeatable): Promise<Outcome[]>;
}

/** Returns the error for a fault. */
export function faultError(fault: UpstreamFault, headers: Record<string, string> = {}): LanceError {
  return new LanceError("ServiceUnavailable", fault, { fault, headers });
}

/** Creates an upstream with a number of addresses. */
export function fakeUpstream(
  behaviours: Behaviour[],
  options: Partial<ResilienceOptions> = {},
): FakeUpstream {
  const counts = behaviours.map(() => 0);
  const ended: number[] = [];
  const noted: UpstreamDecision[] = [];
  const hanging = new Set<(error: LanceError) => void>();
  const endpoints = behaviours.map((_, target) => ({ target, name: String(target) }));
  const resilience = createResilience(endpoints, {
    log: pino({ level: "silent" }),
    noteDecision: (decision) => noted.push(decision),
    ...options,
  });

  function attempt(target: number, signal: Ending, { onSent }: Progress): Promise<string> {
    counts[target] = (counts[target] as number) + 1;
    const behaviour = behaviours[target] as Behaviour;
    if (behaviour === "answer") return Promise.resolve(String(target));
    if (behaviour !== "queue") onSent();
    if (behaviour !== "hang" && behaviour !== "queue")
      return Promise.reject(behaviour instanceof LanceError ? behaviour : faultError(behaviour));
    return new Promise((_, reject) => {
      hanging.add(reject);
      signal.addEventListener("abort", () => {
        ended.push(target);
        reject(signal.reason);
      });
    });
  }

  async function call(
    repeatable: Repeatable = "parallel",
    { signal = new AbortController().signal, deadline }: { signal?: AbortSignal; deadline?: number } = {},
  ): Promise<Outcome> {
    const decisions: UpstreamDecision[] = [];
    const note = (decision: UpstreamDecision) => decisions.push(decision);
    const result = await resilience
      .run({ signal, deadline, note }, repeatable, attempt)
      .catch((error: LanceError) => error);
    return { result, decisions };
  }

  return {
    behaviours,
    counts,
    ended,
    noted,
    fail(fault) {
      for (const reject of hanging) reject(faultError(fault));
      hanging.clear();
    },
    use: (targets) => resilience.replace(endpoints.filter(({ target }) => targets.includes(target))),
    call,
    async calls(times, repeatable) {
      const outcomes: Outcome[] = [];
      for (let index = 0; index < times; index += 1) outcomes.push(await call(repeatable));
      return outcomes;
    },
  };
}

/** Moves the clock in steps, so that a timer's callback can set the next timer. */
export async function pass(ms: number, stepMs = 10): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    vi.advanceTimersByTime(Math.min(stepMs, ms - passed));
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  }
}
