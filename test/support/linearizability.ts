/** A call in a history: what was asked, what was answered, and when. */
export interface HistoryCall<C, R> {
  readonly call: C;
  /** Undefined for a call whose outcome nobody knows: it may take effect at any time from its start, or never. */
  readonly result: R | undefined;
  /** Both from one clock, in any unit. */
  readonly invokedAt: number;
  /** Ignored without a result. */
  readonly returnedAt: number;
}

/** How an object behaves when calls come one at a time. */
export interface SequentialModel<S, C, R> {
  readonly initial: S;
  /**
   * The states that a call may lead to if it had this result; none when it could not have had it. Without a
   * result, those of all that it may have done.
   */
  step(state: S, call: C, result: R | undefined): readonly S[];
  /** Equal for equal states. */
  key(state: S): string;
}

/**
 * Whether there is an order of the calls in which one at a time would have given the same results, and in which
 * no call comes before one that had returned when it began.
 *
 * The search is that of Wing and Gong (1993) with the memory of Lowe (2017): a set of calls that has led to a
 * state already need not be looked at again.
 *
 * @returns the calls in such an order, or undefined when there is none
 */
export function linearize<S, C, R>(
  history: readonly HistoryCall<C, R>[],
  model: SequentialModel<S, C, R>,
): HistoryCall<C, R>[] | undefined {
  const calls = [...history].sort((a, b) => a.invokedAt - b.invokedAt);
  const needed = calls.reduce(
    (mask, { result }, i) => (result === undefined ? mask : mask | (1n << BigInt(i))),
    0n,
  );
  const seen = new Set<string>();

  function search(done: bigint, state: S): HistoryCall<C, R>[] | undefined {
    if ((done & needed) === needed) return [];
    const memo = `${done.toString(36)} ${model.key(state)}`;
    if (seen.has(memo)) return undefined;
    seen.add(memo);
    let firstReturn = Number.POSITIVE_INFINITY;
    for (const [i, { result, returnedAt }] of calls.entries()) {
      if (result !== undefined && !isIn(done, i)) firstReturn = Math.min(firstReturn, returnedAt);
    }
    for (const [i, each] of calls.entries()) {
      if (each.invokedAt > firstReturn) break;
      if (isIn(done, i)) continue;
      for (const next of model.step(state, each.call, each.result)) {
        const rest = search(done | (1n << BigInt(i)), next);
        if (rest !== undefined) return [each, ...rest];
      }
    }
    return undefined;
  }
  return search(0n, model.initial);
}

function isIn(set: bigint, index: number): boolean {
  return ((set >> BigInt(index)) & 1n) === 1n;
}
