import assert from "node:assert/strict";
import { afterEach, beforeEach, vi } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { type fakeUpstream, type Outcome, pass } from "./fixture.ts";
import type { Repeatable } from "./resilience.ts";

/** Gives each test of the file a clock that {@link pass} moves. */
export function useClock(): void {
  beforeEach(() =>
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "performance", "Date"],
      now: Date.UTC(2030, 0),
    }),
  );
  afterEach(() => vi.useRealTimers());
}

/** Returns the outcome of a call that waits for the clock. */
export async function outcomeOf(outcome: Promise<Outcome>, ms = 60_000): Promise<Outcome> {
  let found: Outcome | undefined;
  void outcome.then((value) => {
    found = value;
  });
  for (let passed = 0; passed < ms && found === undefined; passed += 10) await pass(10);
  assert.ok(found, "the call has ended");
  return found;
}

/** Makes a call whose caller gives up after some time. */
export function givenUp(
  upstream: ReturnType<typeof fakeUpstream>,
  ms: number,
  repeatable: Repeatable = "unsent",
): Promise<Outcome> {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new LanceError("Cancelled", "gone")), ms);
  return upstream.call(repeatable, { signal: controller.signal });
}

export const kindOf = ({ result }: Outcome) => (result instanceof LanceError ? result.kind : "answer");

export async function outcomesOf(
  upstream: ReturnType<typeof fakeUpstream>,
  times: number,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let index = 0; index < times; index += 1) outcomes.push(await outcomeOf(upstream.call()));
  return outcomes;
}
