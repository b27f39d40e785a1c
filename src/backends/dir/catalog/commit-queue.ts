import { LanceError } from "../../../namespace/errors.ts";
import { createPace } from "../../../namespace/pace.ts";
import type { Mutation, Outcome } from "./decide.ts";
import { NothingCommitted } from "./writer.ts";

/** Queue of mutations that wait for a commit, and of work that waits for the time between two commits. */
export interface CommitQueue {
  /**
   * Queues a mutation for the next commit; returns its answer.
   *
   * @throws LanceError Throttling if the queue is full
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  /** Runs work while no group is being committed. */
  between<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when the queue is empty. */
  drained(): Promise<void>;
}

/**
 * Runs a commit while no other worker of the process commits to the catalog: workers that competed for the next version
 * would repeat each other's work.
 */
export type TakeTurn = (commit: () => Promise<void>) => Promise<void>;

/** Maximum number of mutations in a commit. */
const MAX_GROUP = 512;

interface Waiting {
  readonly mutation: Mutation<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates a queue. All mutations that arrive while a commit runs form the group of the next one.
 *
 * @param commit commits a group and returns the outcome of each of its mutations
 * @param maxWaiting maximum number of mutations that wait
 * @param inTurn Default: runs the work at once, because a single worker commits.
 */
export function createCommitQueue(
  commit: (group: readonly Mutation<unknown>[]) => Promise<readonly Outcome[]>,
  maxWaiting: number,
  inTurn: TakeTurn = (work) => work(),
): CommitQueue {
  const waiting: Waiting[] = [];
  const turns: (() => Promise<void>)[] = [];
  const pace = createPace();
  let draining: Promise<void> | undefined;

  /** Commits a group and answers each caller. A group that fails as a whole is halved, so that a fault affects its own caller alone. */
  async function answer(group: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await commit(group.map(({ mutation }) => mutation));
      for (const [i, outcome] of outcomes.entries()) {
        if ("error" in outcome) group[i]?.reject(outcome.error);
        else group[i]?.resolve(outcome.answer);
      }
    } catch (error) {
      const isCertain = error instanceof NothingCommitted;
      if (!isCertain || group.length === 1) {
        for (const { reject } of group) reject(isCertain ? error.cause : error);
        return;
      }
      const half = Math.ceil(group.length / 2);
      await answer(group.slice(0, half));
      await answer(group.slice(half));
    }
  }
  async function takeTurn(): Promise<void> {
    await turns.shift()?.();
    const group = waiting.splice(0, MAX_GROUP);
    if (group.length > 0) await answer(group);
  }
  async function drain(): Promise<void> {
    while (waiting.length > 0 || turns.length > 0) {
      await inTurn(takeTurn);
      // On a disk, groups that change nothing wait for nothing, and a caller may ask for thousands of them.
      await pace.pauseIfDue();
    }
    draining = undefined;
  }
  return {
    mutate<T>(mutation: Mutation<T>) {
      if (waiting.length >= maxWaiting) return Promise.reject(tooMany());
      return new Promise<T>((resolve, reject) => {
        waiting.push({ mutation, resolve: resolve as (answer: unknown) => void, reject });
        draining ??= drain();
      });
    },
    between: (work) =>
      new Promise((resolve, reject) => {
        turns.push(() => work().then(resolve, reject));
        draining ??= drain();
      }),
    drained: async () => draining,
  };
}

function tooMany(): LanceError {
  return new LanceError("Throttling", "too many changes of the catalog wait to be committed; try again", {
    headers: { "retry-after": "1" },
    limit: "waiting_changes",
  });
}
