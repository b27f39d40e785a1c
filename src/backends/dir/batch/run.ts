import { setTimeout as sleep } from "node:timers/promises";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Steps, stepsOf } from "../../../runtime/pace.ts";
import { LocationTaken } from "../catalog/base/location-names.ts";
import type { CatalogContext, TableContext } from "../catalog/catalog-context.ts";
import { allOrNothing, type Mutation } from "../catalog/commits/decide.ts";
import { createDraft, type Draft } from "../catalog/state/draft.ts";
import type { CatalogState } from "../catalog/state/state.ts";
import { inSlicesOn, StateChanged } from "../catalog/state/steps.ts";
import { afterChange } from "../format/changes/after-change.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { UnsyncedError } from "../format/local/local-errors.ts";
import type { VersionRange } from "../format/versions/delete-versions.ts";
import { type PreparedVersion, publishPrepared } from "../format/versions/publish-version.ts";
import { departuresOf, markDepartures, sameDepartures } from "./departures.ts";
import { digestOf, type IntendedDataset, type IntendedDeletion, type Intent } from "./intent.ts";
import type { ChangeContext, OwnIntent } from "./journal.ts";
import { complete, takeBack } from "./resolve.ts";

/** A change of several files, or of rows with files, that has been checked and not started. */
export interface Batch {
  /** Changes of the catalog, in order; they go into a single commit. */
  readonly changes: readonly Mutation<void>[];
  /** Whether the directories whose rows the changes take are removed. */
  readonly departing: "remove" | "keep";
  /** Default: none. */
  readonly versions?: readonly PreparedVersion[];
  /** Default: none. */
  readonly deletions?: readonly PlannedDeletion[];
  /** Locations whose marker files must follow the catalog. Default: none. */
  readonly locations?: readonly string[];
  /** Locations that get a row as declared tables. Default: none. */
  readonly declared?: Iterable<string>;
}

/** A deletion of versions. */
export interface PlannedDeletion {
  readonly dataset: DatasetRef;
  readonly ranges: readonly VersionRange[];
  /** See {@link IntendedDeletion}. */
  readonly last: NonNullable<IntendedDeletion["last"]>;
}

/** Result of a batch. */
export interface BatchOutcome {
  /** Number of manifests that each of the deletions deleted. */
  readonly deleted: readonly number[];
}

/** How often a batch is planned because its rows have got other locations meanwhile. */
const MAX_PLANS = 10;

/**
 * Carries out a batch, all or nothing: see docs/adr/0011 and docs/adr/0011.
 *
 * The note of a batch names the exact locations whose rows its commit takes. The commit compares them, and the batch
 * is planned again if they differ.
 *
 * @throws LanceError ConcurrentModification, or the error of a change of the catalog: nothing is left of the batch
 *   then, unless another writer has built on one of its versions, which is logged. ServiceUnavailable and other
 *   errors of the storage leave the outcome open.
 */
export async function runBatch(
  context: ChangeContext,
  batch: Batch,
  signal: AbortSignal,
): Promise<BatchOutcome> {
  for (let plan = 1; ; plan++) {
    try {
      const early = plan === 1 ? await planWithoutNote(batch, context.catalog.known()) : undefined;
      const intent = early ?? (await planOn(await context.catalog.read(), batch));
      checkNotCancelled(signal);
      if (needsNoNote(intent)) {
        await context.catalog.mutate((draft) => applyAsPlanned(batch, intent, draft));
        return { deleted: [] };
      }
      return await carryOut(context, batch, intent);
    } catch (error) {
      if (!(error instanceof OtherLocations || error instanceof StateChanged)) throw error;
      if (plan === MAX_PLANS)
        throw new LanceError("ConcurrentModification", "the tables kept changing; try again");
      await sleep(Math.random() * 5 * plan);
    }
  }
}

/**
 * Plans a batch on a state that may be old. Without a note nothing is done before the commit, which compares the plan
 * with the newest state.
 *
 * @returns undefined if the batch needs a note, or if that state refuses it
 */
async function planWithoutNote(batch: Batch, state: CatalogState): Promise<Intent | undefined> {
  try {
    const intent = await planOn(state, batch);
    return needsNoNote(intent) ? intent : undefined;
  } catch (error) {
    if (error instanceof LanceError || error instanceof StateChanged) return undefined;
    throw error;
  }
}

/** @throws StateChanged, the error of a change */
function planOn(state: CatalogState, batch: Batch): Promise<Intent> {
  return inSlicesOn(state, planIntent(batch, createDraft(state)));
}

/** The commit would take rows of other locations than the note names. */
class OtherLocations extends Error {}

/** The batch is undone; the cause says why. */
class NotCommitted extends Error {
  /** Whether a bucket may write a version of the batch late, so that it must be taken back again. */
  readonly mayReturn: boolean;

  constructor(cause: unknown, mayReturn: boolean) {
    super("the batch is undone", { cause });
    this.mayReturn = mayReturn;
  }
}

async function carryOut(context: ChangeContext, batch: Batch, intent: Intent): Promise<BatchOutcome> {
  const { catalog, journal } = context;
  // From here on the work continues to its end, even if no caller waits for it.
  const own = await journal.begin(intent);
  const end = async () => {
    await own.end();
    catalog.forget(own.id);
  };
  try {
    await commit(context, batch, own);
  } catch (error) {
    if (error instanceof UnsyncedError) await own.leaveToOthers();
    else if (!(error instanceof NotCommitted)) own.abandon();
    else if (error.mayReturn || mayStillArrive(context, intent, error.cause)) own.abandon();
    else await end();
    throw error instanceof NotCommitted ? refusalOf(error) : error;
  }
  try {
    // If another process has taken the change over, it completes the change.
    const { deleted, tidy } = own.isHeld()
      ? await afterChange(() =>
          complete(context, intent, { change: own.id, isAlone: own.isHeld, isOpen: own.isOpen }),
        )
      : { deleted: [], tidy: false };
    // A note that stays costs the next batch a look at it.
    if (tidy) await end().catch(() => own.abandon());
    else own.abandon();
    return { deleted };
  } catch (error) {
    own.abandon();
    throw error;
  }
}

/** Returns the error of a batch that is undone, so that it may be repeated. */
function refusalOf({ cause }: NotCommitted): unknown {
  if (!isLanceError(cause, "OutcomeUnknown")) return cause;
  return new LanceError(
    "ServiceUnavailable",
    "the storage of the catalog failed, and the change was undone",
    { cause },
  );
}

/** Failures of the storage after which a commit may or may not exist. */
const UNDECIDED = [
  "OutcomeUnknown",
  "Internal",
  "DataLoss",
  "ServiceUnavailable",
  "Throttling",
  "DeadlineExceeded",
] as const;

/** Whether a failure is certain: nothing has been committed, and nothing can be committed later. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof OtherLocations) return true;
  if (!(error instanceof LanceError)) return false;
  // A change that finds no place in the queue is never tried.
  return error.limit === "waiting_changes" || !UNDECIDED.some((name) => error.is(name));
}

/** A bucket may carry out late what it did not acknowledge, and a late version must be taken back again. */
function mayStillArrive({ store }: TableContext, { versions }: Intent, cause: unknown): boolean {
  return store.files === undefined && versions.length > 0 && !isRefusal(cause);
}

/**
 * Commits a batch.
 *
 * @throws NotCommitted; any other failure leaves open how much is done
 */
async function commit(context: ChangeContext, batch: Batch, own: OwnIntent): Promise<void> {
  const { intent } = own;
  let isAsked = false;
  let mayReturn = false;
  try {
    await markDepartures(context, intent.departures, own.id);
    for (const location of intent.declared) {
      if (!(await context.layout.claim(location, own.id))) throw new LocationTaken();
    }
    for (const version of batch.versions ?? []) {
      if (!own.isHeld()) throw takenOver();
      await publishPrepared(version, () => {
        mayReturn = true;
      });
    }
    isAsked = true;
    await context.catalog.mutate((draft) => decide(batch, own, draft));
  } catch (cause) {
    // The commit is visible but may disappear after a loss of power, so nothing may be removed because of it.
    if (isAsked && cause instanceof UnsyncedError) throw cause;
    if (!isRefusal(cause) && (await hasLanded(context, own, cause))) return;
    await takeBack(context, own.id, intent);
    throw new NotCommitted(cause, mayReturn);
  }
}

/** Applies a batch and records that it is committed, as a mutation; it may run again after its commit has landed. */
function* decide(batch: Batch, own: OwnIntent, draft: Draft): Steps<void> {
  const verdict = draft.verdictOf(own.id);
  if (verdict === "committed") return;
  if (verdict === "refused" || !own.isHeld()) throw takenOver();
  yield* applyAsPlanned(batch, own.intent, draft);
  draft.record(own.id, "committed");
}

/**
 * Whether a commit has landed whose answer was lost; otherwise it can no longer land.
 *
 * @throws `cause` if that cannot be found out
 */
async function hasLanded({ catalog }: CatalogContext, own: OwnIntent, cause: unknown): Promise<boolean> {
  const verdict = await catalog.mutate((draft) => draft.record(own.id, "refused")).catch(() => undefined);
  if (verdict === "committed") return true;
  // A process that has taken the change over and completed it has removed the verdict with the note.
  if (verdict === "refused" && (await own.isOpen().catch(() => false))) return false;
  throw cause;
}

function takenOver(): LanceError {
  return new LanceError(
    "ConcurrentModification",
    "the change took so long that it was taken back; try again",
  );
}

/** @throws LanceError Cancelled, while nothing has been changed */
export function checkNotCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new LanceError("Cancelled", "the call was cancelled before anything was changed");
}

/** @throws OtherLocations; the error of a change */
function* applyAsPlanned(batch: Batch, { departures }: Intent, draft: Draft): Steps<void> {
  const found = yield* departing(batch, draft);
  if (!sameDepartures(departures, found)) throw new OtherLocations("rows have got other locations meanwhile");
}

/** Applies the changes of a batch to a draft, all or none, and returns the departures. */
function departing({ changes, departing }: Batch, draft: Draft): Steps<Intent["departures"]> {
  return allOrNothing(draft, function* (inner) {
    for (const change of changes) yield* stepsOf(change(inner));
    return yield* departuresOf(draft, inner, departing === "remove");
  });
}

function* planIntent(batch: Batch, draft: Draft): Steps<Intent> {
  const { versions = [], deletions = [], locations = [], declared = [] } = batch;
  return {
    versions: versions.map(({ dataset, version, key, stagedKey, bytes, exists }) => ({
      dataset: toIntended(dataset),
      version: String(version),
      key,
      stagedKey: stagedKey ?? null,
      digest: digestOf(bytes),
      exists,
    })),
    deletions: deletions.map(({ dataset, ranges, last }) => ({
      dataset: toIntended(dataset),
      ranges: ranges.map(({ start, end }) => ({ start: String(start), end: String(end) })),
      last,
    })),
    locations,
    declared: [...declared],
    departures: yield* departing(batch, draft),
  };
}

function needsNoNote(intent: Intent): boolean {
  return Object.values(intent).every((part: readonly unknown[]) => part.length === 0);
}

function toIntended({ root, branch }: DatasetRef): IntendedDataset {
  return { root, branch: branch ?? null };
}
