import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { createSharedCheck } from "../engine/shared-check.ts";
import type { ManifestTable } from "./manifest.ts";
import { type Row, sameRow } from "./row.ts";
import {
  type CatalogState,
  type CatalogView,
  type Changes,
  createDraft,
  createState,
  type Draft,
} from "./state.ts";

/**
 * A change to the catalog: it looks at the draft, changes it, and returns the caller's answer.
 *
 * It throws LanceError to refuse, before it has changed anything. It may run several times, on different
 * states, and has to decide the same way each time: random names are drawn outside of it.
 */
export type Mutation<T> = (draft: Draft) => T;

/** The objects of a base directory, as the manifest has them. */
export interface Catalog {
  /** The state with every commit that had finished before this call, whichever process made it. */
  read(): Promise<CatalogState>;
  /**
   * Commits a change.
   *
   * @throws LanceError what the mutation throws; ConcurrentModification, when other processes kept winning.
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  close(): Promise<void>;
}

/** How often a commit is tried again after another process won. */
const MAX_RETRIES = 20;

/** The most mutations in one commit. */
const MAX_GROUP = 512;

/** How many commits make enough fragments to join them: the cost of a merge grows with their number. */
const COMPACT_EVERY = 16;

interface Waiting {
  readonly mutation: Mutation<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly answer: unknown } | { readonly error: unknown };

/** Opens the catalog of a manifest table. */
export function createCatalog(manifest: ManifestTable, log: Logger): Catalog {
  let state = createState([]);
  let version = 0;
  let committing: Promise<unknown> | undefined;
  let draining: Promise<void> | undefined;
  let commitsSinceCompaction = 0;
  let loadsStarted = 0;
  let newestLoad = 0;
  const waiting: Waiting[] = [];

  async function load(target: number): Promise<void> {
    const started = ++loadsStarted;
    const rows = await manifest.read(target);
    // A load that began later has seen at least as much.
    if (started < newestLoad) return;
    newestLoad = started;
    version = target;
    state = createState(rows);
    if (state.size !== rows.length) log.warn({ version }, "the manifest has duplicate rows");
  }
  const refresh = createSharedCheck(async () => {
    let latest = await manifest.latest();
    // A commit of this process that is about to be applied needs no reading.
    if (latest !== version && committing !== undefined) {
      await committing.catch(() => {});
      latest = await manifest.latest();
    }
    if (latest !== version) await load(latest);
  });

  function commit(changes: Changes, base: CatalogView): Promise<number> {
    const known = new Set([...changes.keys()].filter((id) => base.get(id) !== undefined));
    return manifest.commit(changes, known);
  }

  /** Commits a group on the newest state and returns the outcome of each of its mutations. */
  async function commitGroup(group: readonly Waiting[]): Promise<readonly Outcome[]> {
    await refresh();
    const baseVersion = version;
    const draft = createDraft(state);
    const outcomes = group.map(({ mutation }) => attempt(mutation, draft));
    if (draft.changes.size === 0) return outcomes;
    if (baseVersion === 0) {
      await manifest.ensure();
      return commitGroup(group);
    }
    const running = commit(draft.changes, state).then((landed) => {
      const alone = landed === baseVersion + 1 && version === baseVersion;
      if (alone) {
        state.apply(draft.changes);
        version = landed;
      }
      return { landed, alone };
    });
    committing = running;
    try {
      const { landed, alone } = await running;
      return alone ? outcomes : await reconcile(group, draft, landed);
    } finally {
      committing = undefined;
    }
  }

  /**
   * Settles a group whose commit met one of another process, which the engine has merged on its own.
   *
   * The group is decided again on the version right before the commit. What that gives is what should have
   * been committed: where the table differs, a second commit puts it right, and the answers follow it.
   */
  async function reconcile(
    group: readonly Waiting[],
    committed: Draft,
    landed: number,
  ): Promise<readonly Outcome[]> {
    const [before, after] = await Promise.all([manifest.read(landed - 1), manifest.read(landed)]);
    const [should, is] = [createDraft(createState(before)), createState(after)];
    const outcomes = group.map(({ mutation }) => attempt(mutation, should));
    const fix = new Map<string, Row | undefined>();
    for (const id of new Set([...committed.changes.keys(), ...should.changes.keys()])) {
      if (!sameRow(should.get(id), is.get(id))) fix.set(id, should.get(id));
    }
    if (fix.size > 0) {
      log.warn({ version: landed, rows: fix.size }, "a commit that met another one is put right");
      await commit(fix, is);
    }
    return outcomes;
  }

  async function commitWithRetries(group: readonly Waiting[]): Promise<readonly Outcome[]> {
    for (let tries = 0; ; tries++) {
      try {
        return await commitGroup(group);
      } catch (error) {
        if (!isLanceError(error, "ConcurrentModification")) throw error;
        if (tries === MAX_RETRIES) {
          throw new LanceError("ConcurrentModification", "the catalog kept changing; try again", {
            cause: error,
          });
        }
        await sleep(Math.random() * 10 * (tries + 1));
      }
    }
  }

  async function compact(): Promise<void> {
    if (++commitsSinceCompaction < COMPACT_EVERY) return;
    commitsSinceCompaction = 0;
    const before = version;
    const running = manifest.compact().then(
      (after) => {
        if (after === before + 1 && version === before) version = after;
      },
      (error) => log.debug({ err: error }, "the manifest was not compacted"),
    );
    committing = running;
    await running;
    committing = undefined;
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const group = waiting.splice(0, MAX_GROUP);
      try {
        const outcomes = await commitWithRetries(group);
        for (const [i, outcome] of outcomes.entries()) {
          if ("error" in outcome) group[i]?.reject(outcome.error);
          else group[i]?.resolve(outcome.answer);
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      await compact();
    }
    draining = undefined;
  }

  return {
    async read() {
      await refresh();
      return state;
    },
    mutate<T>(mutation: Mutation<T>) {
      return new Promise<T>((resolve, reject) => {
        waiting.push({ mutation, resolve: resolve as (answer: unknown) => void, reject });
        draining ??= drain();
      });
    },
    async close() {
      await draining;
      manifest.close();
    },
  };
}

function attempt(mutation: Mutation<unknown>, draft: Draft): Outcome {
  try {
    return { answer: mutation(draft) };
  } catch (error) {
    return { error };
  }
}
