import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { createSharedCheck } from "../engine/shared-check.ts";
import { allowStaleness, type Head } from "./freshness.ts";
import { createHousekeeping } from "./housekeeping.ts";
import type { ManifestTable } from "./manifest.ts";
import { type CatalogState, type Changes, createDraft, createState, type Draft } from "./state.ts";
import type { Committed } from "./writer.ts";

/**
 * A change to the catalog: it looks at the draft, changes it, and returns the caller's answer.
 *
 * It throws LanceError to refuse, before it has changed anything. It may run several times, on different
 * states, and has to decide the same way each time: random names are drawn outside of it.
 */
export type Mutation<T> = (draft: Draft) => T;

/** The objects of a base directory, as the manifest has them. */
export interface Catalog {
  /**
   * The state with every commit that had finished before this call, whichever process made it; with a staleness
   * that is allowed, those of other processes may be missing for so long.
   */
  read(): Promise<CatalogState>;
  /** The properties of the root, which has no row: the metadata of the manifest table. As fresh as {@link read}. */
  rootProperties(): Promise<Readonly<Record<string, string>>>;
  /**
   * Commits a change.
   *
   * It is on the disk when this returns.
   *
   * @throws LanceError what the mutation throws; ConcurrentModification, when other processes kept winning;
   *   Throttling, when too many mutations wait; ServiceUnavailable, when the storage fails: then it may be
   *   committed or not.
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  close(): Promise<void>;
}

/** The most mutations in one commit. */
const MAX_GROUP = 512;

/**
 * A commit that has taken longer may have been overtaken by so many others that the version before its own is gone,
 * in milliseconds; see {@link ManifestTable.isCurrent}.
 */
const SURE_WITHIN_MS = 5_000;

interface Waiting {
  readonly mutation: Mutation<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly answer: unknown } | { readonly error: unknown };

/** Options of {@link createCatalog}. */
export interface CatalogOptions {
  /** How old the last look at the storage may be for a read, in milliseconds. Default: 0. */
  readonly maxStalenessMs?: number | undefined;
  /** The most mutations that wait for a commit. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
  /** How often a commit is tried again after another process won. Default: 20. */
  readonly maxRetries?: number | undefined;
  /** Whether the manifest is kept small in the background. Default: true. */
  readonly maintenance?: boolean | undefined;
}

/** Opens the catalog of a manifest table. */
export function createCatalog(
  manifest: ManifestTable,
  log: Logger,
  { maxStalenessMs = 0, maxWaiting = 10_000, maxRetries = 20, maintenance = true }: CatalogOptions = {},
): Catalog {
  let state = createState([]);
  let version = 0;
  let generation = 0;
  let committing: Promise<unknown> | undefined;
  let draining: Promise<void> | undefined;
  let loadsStarted = 0;
  let newestLoad = 0;
  const waiting: Waiting[] = [];
  const turns: (() => Promise<void>)[] = [];
  const chores = maintenance ? manifest.chores({ current, join }, log) : [];
  const housekeeping = createHousekeeping(chores, log);

  const isNewest = (head: Head) => head.version === version && head.generation === generation;

  async function load({ version: target, generation: targetGeneration }: Head): Promise<void> {
    const started = ++loadsStarted;
    const from = version;
    const delta =
      from > 0 && from < target && state.isMergeable ? await manifest.changes(from, target) : undefined;
    const whole = delta === undefined ? await manifest.read(target) : undefined;
    // A load that began later has seen at least as much.
    if (started < newestLoad) return;
    newestLoad = started;
    if (whole !== undefined) state = whole;
    else if (delta !== undefined && version === from) state.merge(delta);
    else return;
    version = target;
    generation = targetGeneration;
    if (whole !== undefined && state.duplicates > 0) log.warn({ version }, "the manifest has duplicate rows");
  }
  const refresh = createSharedCheck(async () => {
    let head = await manifest.head();
    // A commit of this process that is about to be applied needs no reading.
    if (head.version !== version && committing !== undefined) {
      await committing.catch(() => {});
      head = await manifest.head();
    }
    if (!isNewest(head)) await load(head);
  });

  /**
   * Commits a group on the newest state and returns the outcome of each of its mutations; undefined when another
   * process was faster, and nothing is committed.
   */
  async function commitGroup(group: readonly Waiting[]): Promise<readonly Outcome[] | undefined> {
    const began = Date.now();
    await refresh();
    const draft = createDraft(state);
    const outcomes = group.map(({ mutation }) => attempt(mutation, draft));
    if (draft.changes.size === 0) return outcomes;
    if (version === 0) {
      await manifest.ensure();
      return commitGroup(group);
    }
    const { changes } = draft;
    return (await take(began, changes, () => manifest.commit(version, state, changes)))
      ? outcomes
      : undefined;
  }

  /**
   * Makes a commit on the state and takes it over.
   *
   * @param began when the state was last known to be the newest, in milliseconds since 1970
   * @returns false when another process was faster
   */
  async function take(
    began: number,
    changes: Changes,
    work: () => Promise<Committed | undefined>,
  ): Promise<boolean> {
    const [base, onto] = [version, state];
    const running = work();
    committing = running;
    try {
      const committed = await running;
      if (committed === undefined) return false;
      if (Date.now() - began > SURE_WITHIN_MS && !(await manifest.isCurrent(committed.version))) return false;
      if (version === base && state === onto) {
        state.apply(changes, committed.addresses);
        version = committed.version;
      }
      housekeeping.noteCommit();
      return true;
    } finally {
      committing = undefined;
    }
  }

  /** What the newest version of the manifest says. */
  async function current(): Promise<Manifest | undefined> {
    await refresh();
    return version === 0 ? undefined : manifest.manifestOf(version);
  }
  /** Joins fragments between the commits of two groups; false when they have changed meanwhile. */
  async function join(fragments: readonly DataFragment[]): Promise<boolean> {
    const prepared = await manifest.prepareJoin(version, state, fragments);
    return inTurn(async () => {
      const began = Date.now();
      await refresh();
      return take(began, new Map(), () => manifest.join(version, prepared));
    });
  }
  /** Does something while no group is being committed. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      turns.push(() => work().then(resolve, reject));
      draining ??= drain();
    });
  }

  async function commitWithRetries(group: readonly Waiting[]): Promise<readonly Outcome[]> {
    for (let tries = 0; tries <= maxRetries; tries++) {
      if (tries > 0) await sleep(Math.random() * 10 * tries);
      const outcomes = await commitGroup(group);
      if (outcomes !== undefined) return outcomes;
    }
    throw new LanceError("ConcurrentModification", "the catalog kept changing; try again");
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0 || turns.length > 0) {
      await turns.shift()?.();
      const group = waiting.splice(0, MAX_GROUP);
      if (group.length === 0) continue;
      try {
        const outcomes = await commitWithRetries(group);
        for (const [i, outcome] of outcomes.entries()) {
          if ("error" in outcome) group[i]?.reject(outcome.error);
          else group[i]?.resolve(outcome.answer);
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    draining = undefined;
  }

  const refreshForRead = allowStaleness(async () => {
    const head = manifest.headNow();
    if (head === undefined || !isNewest(head)) await refresh();
  }, maxStalenessMs);
  return {
    async read() {
      await refreshForRead();
      return state;
    },
    async rootProperties() {
      await refreshForRead();
      const { tableMetadata = {} } = (version === 0 ? undefined : await manifest.manifestOf(version)) ?? {};
      return Object.fromEntries(Object.entries(tableMetadata).filter(([key]) => !key.startsWith("lance.")));
    },
    mutate<T>(mutation: Mutation<T>) {
      if (waiting.length >= maxWaiting) return Promise.reject(tooMany());
      return new Promise<T>((resolve, reject) => {
        waiting.push({ mutation, resolve: resolve as (answer: unknown) => void, reject });
        draining ??= drain();
      });
    },
    async close() {
      await housekeeping.close();
      await draining;
      await manifest.close();
    },
  };
}

function tooMany(): LanceError {
  return new LanceError("Throttling", "too many changes of the catalog wait to be committed; try again", {
    headers: { "retry-after": "1" },
  });
}

function attempt(mutation: Mutation<unknown>, draft: Draft): Outcome {
  try {
    return { answer: mutation(draft) };
  } catch (error) {
    return { error };
  }
}
