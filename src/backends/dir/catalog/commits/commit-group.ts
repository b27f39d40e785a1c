import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import { type CommitBase, stateAfter } from "../manifest/commit-base.ts";
import { StateMismatch } from "../manifest/commit-plan.ts";
import type { ManifestTable } from "../manifest/manifest-table.ts";
import type { ConfirmOptions } from "../manifest/newest-version.ts";
import { type Committed, NothingCommitted, type PreparedCommit } from "../manifest/prepared-commit.ts";
import { MAX_ROWS_AT_ONCE } from "../manifest/reader.ts";
import type { PropertyLimits } from "../state/properties-size.ts";
import type { CatalogState } from "../state/state.ts";
import { inSlicesOn, StateChanged } from "../state/steps.ts";
import type { Changes } from "../state/view.ts";
import type { CommitGroup } from "./commit-queue.ts";
import { type Decision, decide, type Mutation, type Outcome } from "./decide.ts";

/**
 * Runs work while no other worker of the process commits to the catalog: workers that competed for the next version
 * would repeat each other's work.
 */
export type TakeTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** A catalog as its commits of groups use it. */
export interface GroupCommitOptions {
  readonly manifest: Pick<ManifestTable, "confirm" | "ensure" | "losing" | "prepare">;
  readonly forgettable: Pick<Forgettable, "in">;
  readonly limits: PropertyLimits;
  readonly inTurn: TakeTurn;
  /** Returns the version in memory. */
  readonly held: () => {
    readonly version: number;
    readonly state: CatalogState;
    /** Whether the state is that of the version. */
    readonly isSound: boolean;
    /** Whether a loss of power may remove the version. */
    readonly isUnsynced: boolean;
  };
  /** Brings the version in memory up to date. */
  readonly refresh: () => Promise<void>;
  /**
   * Checks whether the version in memory is the newest.
   *
   * @param options see {@link ConfirmOptions}
   * @returns undefined if only {@link GroupCommitOptions.refresh} can tell
   */
  readonly confirm: (options?: ConfirmOptions) => Promise<boolean> | undefined;
  /**
   * Commits on the version in memory and applies the commit to it.
   *
   * @param sinceRefresh the milliseconds since the state was last known to be the newest
   * @returns false if another process was faster
   */
  readonly take: (
    sinceRefresh: () => number,
    changes: Changes,
    work: () => Promise<Committed | undefined>,
  ) => Promise<boolean>;
}

/** Commits groups of mutations. */
interface GroupCommits {
  /**
   * Commits a group and returns the outcome of each of its mutations.
   *
   * @param mayFollow called when the next group may be given, while this one is being published
   * @returns undefined, with nothing committed, if another process was faster or the table had to be created
   */
  commitGroup(
    group: readonly Mutation<unknown>[],
    mayFollow: () => void,
  ): Promise<readonly Outcome[] | undefined>;
}

/** A commit that is being published, as the base of the next one. */
interface Tip {
  readonly base: CommitBase;
  /** Whether it is part of the history now. */
  isLanded: boolean;
}

/** A group whose commit is prepared. */
interface PreparedGroup extends Decision {
  readonly prepared: PreparedCommit;
  /** Whether the history is still that of the state in memory. Default: it is. */
  readonly confirmed?: Promise<boolean> | undefined;
  readonly sinceRefresh: () => number;
}

/** A group whose commit is prepared and follows one that was being published then. */
interface EarlyGroup extends PreparedGroup {
  readonly tip: Tip;
}

/**
 * Creates the commits of a catalog.
 *
 * On an object store, where the last request of a commit takes as long as all those before it, the next group is decided
 * on the version that is being published, and its files are written meanwhile. If that version does not become part of the history,
 * these files are removed and the group is decided again (docs/adr/0057).
 */
export function createGroupCommits(options: GroupCommitOptions): GroupCommits {
  const { manifest, forgettable, limits, inTurn, held, refresh, confirm, take } = options;
  /** Whether the last commit was not the next version of the state in memory, or failed. */
  let hasLost = false;
  let tip: Tip | undefined;

  /** Returns undefined if the group has to wait for the end of the commit that is being published. */
  async function prepareEarly(group: readonly Mutation<unknown>[]): Promise<EarlyGroup | undefined> {
    const after = tip;
    if (after === undefined || hasLost) return undefined;
    const sinceRefresh = startStopwatch();
    const confirmed = confirm({ mayBeFollowed: true });
    if (confirmed === undefined) return undefined;
    // Its failure shows where it is awaited.
    confirmed.catch(() => {});
    try {
      const decision = await decideOn(manifest, after.base, group, limits);
      // The answer that nothing needs to change, or only a refusal, is based on the newest version.
      if (decision === undefined || !isChange(decision)) return undefined;
      const { changes, recorded } = decision;
      const verdicts = { recorded, forgotten: forgettable.in(held().state) };
      const prepared = await manifest.prepare(after.base, changes, verdicts);
      return prepared && { ...decision, prepared, tip: after, confirmed, sinceRefresh };
    } catch {
      // If it fails again on the newest version, the callers get the failure.
      return undefined;
    }
  }
  /** Whether the version that a prepared group follows is the one in memory. */
  function isNext({ tip: { base, isLanded } }: EarlyGroup): boolean {
    const { version, isSound } = held();
    return isLanded && isSound && version === base.version;
  }
  async function commitOnNewest(
    group: readonly Mutation<unknown>[],
    mayFollow: () => void,
  ): Promise<readonly Outcome[] | undefined> {
    const sinceRefresh = startStopwatch();
    // The files of the commit are written during the check. Beside other writers that would often be in vain.
    const confirmed = hasLost ? undefined : confirm();
    if (confirmed === undefined) await refresh();
    // Its failure shows where it is awaited.
    confirmed?.catch(() => {});
    const { version, state } = held();
    // A read may meanwhile bring the state to a version that another process has made.
    const base = { version, state, revision: state.revision };
    const decision = await decideOn(manifest, base, group, limits);
    if (decision === undefined) return undefined;
    const { changes, recorded, outcomes } = decision;
    // The answer that nothing needs to change is based on the newest version, so that version must be durable.
    if (!isChange(decision) && !held().isUnsynced) return ((await confirmed) ?? true) ? outcomes : undefined;
    if (base.version === 0) {
      await manifest.ensure();
      return undefined;
    }
    const verdicts = { recorded, forgotten: forgettable.in(base.state) };
    const prepared = await manifest.prepare(base, changes, verdicts);
    return prepared && publish({ ...decision, prepared, confirmed, sinceRefresh }, mayFollow);
  }
  async function publish(
    group: PreparedGroup,
    mayFollow: () => void,
  ): Promise<readonly Outcome[] | undefined> {
    const { outcomes, prepared, confirmed, sinceRefresh } = group;
    let own: Tip | undefined;
    function onPut() {
      own = tipOf(group);
      if (own === undefined) return;
      tip = own;
      mayFollow();
    }
    try {
      const work = () => prepared.publish({ confirmed, onPut });
      const isLanded = await take(sinceRefresh, group.changes, work);
      if (own !== undefined) own.isLanded = isLanded;
      return isLanded ? outcomes : undefined;
    } finally {
      tip = undefined;
    }
  }
  /** Returns a commit that is being published as the base of the next one; undefined if none may follow it yet. */
  function tipOf({ changes, recorded, prepared }: PreparedGroup): Tip | undefined {
    const { version, state } = held();
    const { file, rows, addresses } = prepared;
    const isSimple = state.duplicates === 0 && changes.size <= MAX_ROWS_AT_ONCE;
    if (manifest.confirm === undefined || version + 1 !== prepared.version || !isSimple) return undefined;
    const after = stateAfter(state, { changes, recorded, rows, addresses });
    return { base: { version: prepared.version, state: after, file }, isLanded: false };
  }
  return {
    async commitGroup(group, mayFollow) {
      const early = await prepareEarly(group);
      return inTurn(async () => {
        let outcomes: readonly Outcome[] | undefined;
        try {
          if (early !== undefined && isNext(early)) outcomes = await publish(early, mayFollow);
          else {
            await early?.prepared.discard();
            outcomes = await commitOnNewest(group, mayFollow);
          }
        } finally {
          hasLost = outcomes === undefined;
        }
        return outcomes;
      });
    },
  };
}

/** Whether a decision changes the catalog. */
function isChange({ changes, recorded }: Decision): boolean {
  return changes.size > 0 || recorded.size > 0;
}

/**
 * Decides a group on the state of a version, without the mutations that would lose values of rows.
 *
 * @returns undefined if the version has disappeared, or must be read and is still being published
 * @throws StateChanged
 */
async function decideOn(
  manifest: Pick<ManifestTable, "losing">,
  base: CommitBase,
  group: readonly Mutation<unknown>[],
  limits: PropertyLimits,
): Promise<Decision | undefined> {
  const kept = new Set<string>();
  // A refused mutation changes the state that later ones see, and these may then lose further rows. Each turn finds
  // at least one.
  for (;;) {
    const decision = await inSlicesOn(base.state, decide(base.state, group, kept, limits), base.revision);
    if (base.version === 0 || decision.changes.size === 0) return decision;
    const losing = await manifest.losing(base, decision.changes);
    if (losing === undefined) return undefined;
    const known = kept.size;
    for (const id of losing) kept.add(id);
    if (kept.size === known) return decision;
  }
}

/** Changes whose verdicts the next commit removes. */
interface Forgettable {
  add(changeId: string): void;
  /** Returns those whose verdicts a state has; the others have been removed. */
  in(state: Pick<CatalogState, "verdicts">): ReadonlySet<string>;
}

/** Creates an empty {@link Forgettable}. */
export function createForgettable(): Forgettable {
  const ids = new Set<string>();
  return {
    add(changeId) {
      ids.add(changeId);
    },
    in({ verdicts }) {
      for (const id of ids) if (!verdicts.has(id)) ids.delete(id);
      return new Set(ids);
    },
  };
}

/** Counts of commits since the start. */
interface CommitCounts {
  groups: number;
  changes: number;
  retries: number;
}

/** Options of {@link withRetries}. */
interface RetryOptions {
  /** Maximum number of retries after another process won. */
  readonly maxRetries: number;
  readonly counts: CommitCounts;
  /** Called when the state in memory does not fit the manifest; it is read again for the next attempt. */
  readonly onMismatch: (error: unknown) => void;
}

/** Commits each group until it is committed or fails. It throws LanceError ConcurrentModification after the last attempt. */
export function withRetries(
  commitGroup: GroupCommits["commitGroup"],
  { maxRetries, counts, onMismatch }: RetryOptions,
): CommitGroup {
  return async (group, mayFollow) => {
    counts.groups += 1;
    counts.changes += group.length;
    for (let tries = 0; tries <= maxRetries; tries++) {
      if (tries > 0) counts.retries += 1;
      if (tries > 0) await sleep(Math.random() * 10 * tries);
      const outcomes = await commitGroup(group, mayFollow).catch((error: unknown) => {
        if (error instanceof StateChanged) return undefined;
        const isMismatch = error instanceof NothingCommitted && error.cause instanceof StateMismatch;
        if (tries > 0 || !isMismatch) throw error;
        onMismatch(error);
        return undefined;
      });
      if (outcomes !== undefined) return outcomes;
    }
    throw new LanceError("ConcurrentModification", "the catalog kept changing; try again");
  };
}
