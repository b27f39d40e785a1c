import { LanceError } from "../../../namespace/errors.ts";
import { type CatalogView, createDraft, type Draft } from "../catalog/state.ts";
import type { VersionRange } from "../format/delete-versions.ts";
import type { DatasetRef } from "../format/layout.ts";
import { type PreparedVersion, publishVersion } from "../format/staged-version.ts";
import type { DirContext } from "../operations/context.ts";
import { type Departure, digestOf, type IntendedDataset, type Intent } from "./journal.ts";
import { complete, isCommitted, markDepartures, settleDepartures, takeBack } from "./settle.ts";

/** A change of several tables that has been checked and not yet begun. */
export interface Batch {
  readonly versions: readonly PreparedVersion[];
  /** Changes of the catalog, in order; they go into one commit. */
  readonly changes: readonly ((draft: Draft) => void)[];
  readonly deletions: readonly { readonly dataset: DatasetRef; readonly ranges: readonly VersionRange[] }[];
  /** Locations whose marker files have to follow the catalog. */
  readonly locations: readonly string[];
  /** Locations that lose their row by the changes. Default: none. */
  readonly departures?: readonly Departure[];
}

/** What has come of a batch. */
export interface BatchOutcome {
  /** How many manifests each of the deletions deleted. */
  readonly deleted: readonly number[];
}

/**
 * Carries out a batch, all of it or nothing: see docs/adr/0011.
 *
 * @throws LanceError ConcurrentModification or what a change of the catalog throws; nothing is left of the
 *   batch then, unless another writer has built on one of its versions, which the log says.
 */
export async function runBatch(
  context: DirContext,
  batch: Batch,
  signal: AbortSignal,
): Promise<BatchOutcome> {
  const { catalog, journal } = context;
  const intent = toIntent(batch, await catalog.read());
  checkNotCancelled(signal);
  // From here on the work goes on to its end, whether somebody waits for it or not.
  const pending = await journal.begin(intent);
  try {
    await markDepartures(context, intent);
    await commit(context, batch, intent);
    const { deleted, tidy } = await complete(context, intent);
    if (tidy) await pending.end();
    else pending.abandon();
    return { deleted };
  } catch (error) {
    if (error instanceof NotCommitted) {
      await pending.end();
      throw error.cause;
    }
    pending.abandon();
    throw error;
  }
}

/** The batch is undone; the cause says why. */
class NotCommitted extends Error {}

/** Failures of the storage, after which a commit may or may not be there. */
const UNDECIDED = ["Internal", "ServiceUnavailable", "Throttling", "DeadlineExceeded"] as const;

/** Commits a batch. @throws NotCommitted; any other failure leaves open how much of it has been done */
async function commit(context: DirContext, { versions, changes }: Batch, intent: Intent): Promise<void> {
  try {
    for (const version of versions) await publishVersion(version);
    if (intent.rows.length > 0) await context.catalog.mutate((draft) => applyAll(changes, draft));
  } catch (cause) {
    // A refusal is certain; of another failure only the storage can tell what it came to.
    const refused = cause instanceof LanceError && !UNDECIDED.some((name) => cause.is(name));
    if (!refused && !leavesTrace(intent)) throw cause;
    if (!refused && (await isCommitted(context, intent))) return;
    await takeBack(context, intent);
    await settleDepartures(context, intent);
    throw new NotCommitted("the batch is undone", { cause });
  }
}

/** Whether the storage can tell this commit from another one: rows that are gone may have been taken by anybody. */
function leavesTrace({ rows, versions }: Intent): boolean {
  return versions.length > 0 || rows.some(({ location }) => location !== null);
}

/** @throws LanceError Cancelled, while nothing has been changed */
export function checkNotCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new LanceError("Cancelled", "the call was cancelled before anything was changed");
}

/** Applies changes to a draft, all or none. @throws what one of them throws */
export function applyAll(changes: Batch["changes"], draft: Draft): void {
  const inner = createDraft(draft);
  for (const change of changes) change(inner);
  for (const [objectId, row] of inner.changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
  }
}

function toIntent(
  { versions, changes, deletions, locations, departures }: Batch,
  state: CatalogView,
): Intent {
  const draft = createDraft(state);
  applyAll(changes, draft);
  return {
    versions: versions.map(({ dataset, version, key, stagedKey, bytes, exists }) => ({
      dataset: toIntended(dataset),
      version: String(version),
      key,
      stagedKey,
      digest: digestOf(bytes),
      exists,
    })),
    rows: [...draft.changes].map(([objectId, row]) => ({ objectId, location: row?.location ?? null })),
    deletions: deletions.map(({ dataset, ranges }) => ({
      dataset: toIntended(dataset),
      ranges: ranges.map(({ start, end }) => ({ start: String(start), end: String(end) })),
    })),
    locations,
    ...(departures !== undefined && { departures }),
  };
}

function toIntended({ root, branch }: DatasetRef): IntendedDataset {
  return { root, branch: branch ?? null };
}
