/** A call in a history: the question, the answer, and their times. */
export interface HistoryCall<C, R> {
  readonly call: C;
  /** Undefined for a call whose outcome is unknown: it may take effect at any time after its start, or never. */
  readonly result: R | undefined;
  /** Start of the call. Both times are from one clock, in any unit. */
  readonly invokedAt: number;
  /** End of the call; ignored without a result. */
  readonly returnedAt: number;
}

/** The behaviour of an object when calls come one at a time. */
export interface SequentialModel<S, C, R> {
  readonly initial: S;
  /**
   * Returns the states to which a call with this result may lead; an empty list when the result is impossible. Without
   * a result, returns the states after all that the call may have done.
   */
  step(state: S, call: C, result: R | undefined): readonly S[];
  /** Returns a key that is equal for equal states. */
  key(state: S): string;
}

/**
 * Searches for an order in which the calls, made one at a time, would have given their results, and in which no call
 * precedes another that returned before it began.
 *
 * The algorithm is that of Wing and Gong (1993) with the memory of Lowe (2017): a set of calls that has led to a known
 * state is not searched again.
 *
 * @returns the calls in an order of this kind, or undefined when there is none
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
