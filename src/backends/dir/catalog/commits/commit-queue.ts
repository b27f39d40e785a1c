import { LanceError } from "../../../../namespace/errors.ts";
import { createPace } from "../../../../runtime/pace.ts";
import { NothingCommitted } from "../manifest/prepared-commit.ts";
import type { Mutation, Outcome } from "./decide.ts";

/** Queue of mutations that wait for a commit. */
export interface CommitQueue {
  /**
   * Queues a mutation for the next commit; returns its answer.
   *
   * @throws LanceError Throttling if the queue is full
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  /** Resolves when the queue is empty and all groups have been committed. */
  drained(): Promise<void>;
}

/**
 * Commits a group and returns the outcome of each of its mutations.
 *
 * @param mayFollow called when the next group may be prepared, while this one is being published. Default: that group
 *   begins after this one
 */
export type CommitGroup = (
  group: readonly Mutation<unknown>[],
  mayFollow: () => void,
) => Promise<readonly Outcome[]>;

/** Maximum number of mutations in a commit. */
const MAX_GROUP = 512;

/** Maximum number of groups at a time: one that is published, and the next one. */
export const MAX_GROUPS = 2;

interface Waiting {
  readonly mutation: Mutation<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates a queue. All mutations that arrive before a group may follow the running one form that group.
 *
 * @param maxWaiting maximum number of mutations that wait
 */
export function createCommitQueue(commit: CommitGroup, maxWaiting: number): CommitQueue {
  const waiting: Waiting[] = [];
  const running = new Set<Promise<void>>();
  const pace = createPace();
  let draining: Promise<void> | undefined;

  /** Commits a group and answers each caller. A group that fails as a whole is halved, so that a fault affects its own caller alone. */
  async function answer(group: readonly Waiting[], mayFollow: () => void): Promise<void> {
    try {
      const outcomes = await commit(
        group.map(({ mutation }) => mutation),
        mayFollow,
      );
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
      await answer(group.slice(0, half), mayFollow);
      await answer(group.slice(half), mayFollow);
    }
  }
  /** Starts to commit the waiting mutations; resolves when the next group may start. */
  async function startGroup(): Promise<void> {
    // Mutations of the current turn of the event loop join the group.
    await Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const answered = answer(waiting.splice(0, MAX_GROUP), resolve).finally(() => {
      running.delete(answered);
      resolve();
    });
    running.add(answered);
    await promise;
    while (running.size >= MAX_GROUPS) await Promise.race(running);
  }
  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      await startGroup();
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
    async drained() {
      while (draining !== undefined || running.size > 0) await Promise.all([draining, ...running]);
    },
  };
}

function tooMany(): LanceError {
  return new LanceError("Throttling", "too many catalog changes are waiting to be committed; try again", {
    headers: { "retry-after": "1" },
    limit: "waiting_changes",
  });
}
