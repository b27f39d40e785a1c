import { rootName } from "../catalog/base/location-names.ts";
import type { CatalogContext, TableContext } from "../catalog/catalog-context.ts";
import { isHiddenUnder, ownerOf, updateMark } from "../catalog/table-marks.ts";
import type { DatasetRef } from "../format/dataset.ts";
import {
  type DeletionChecks,
  deleteVersions,
  type VersionRange,
} from "../format/versions/delete-versions.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { type Finisher, finishDepartures, mayGoOn, undoDepartures } from "./departures.ts";
import { digestOf, type IntendedDataset, type IntendedVersion, type Intent } from "./intent.ts";
import type { ChangeContext, PendingIntent } from "./journal.ts";

/** Outcome of an abandoned change. */
export interface Resolution {
  readonly committed: boolean;
  /** Whether its note is gone. Otherwise the log names the remaining work, and a later call retries. */
  readonly done: boolean;
}

/**
 * Completes the change of a process that has ended or fallen silent, or takes it back. The verdict in the manifest
 * decides: recording a refusal keeps a slow owner from committing, and reveals whether it has.
 *
 * Repeating it changes nothing more, so any process may do it, any number of times.
 */
export async function resolvePending(context: ChangeContext, pending: PendingIntent): Promise<Resolution> {
  const { catalog } = context;
  const committed = (await catalog.mutate((draft) => draft.record(pending.id, "refused"))) === "committed";
  // A verdict is removed only after its note, so it counts only while the note exists.
  if (!(await pending.isOpen())) {
    catalog.forget(pending.id);
    return { committed, done: true };
  }
  // The next call takes back what a slow owner still publishes.
  const done = committed
    ? (await complete(context, pending.intent, successorOf(pending))).tidy
    : await takeBack(context, pending.id, pending.intent).then(pending.isOver);
  if (done) {
    await pending.end();
    catalog.forget(pending.id);
  }
  return { committed, done };
}

function successorOf({ id, isOpen }: PendingIntent): Finisher {
  return { change: id, isAlone: () => false, isOpen };
}

/**
 * Undoes the work for a refused intent. It removes only what the intent itself made.
 *
 * @param change the id of the change
 */
export async function takeBack(context: ChangeContext, change: string, intent: Intent): Promise<void> {
  const ofTables = Map.groupBy(intent.versions, ({ dataset }) => dataset.root);
  for (const [root, versions] of ofTables) await takeVersionsBack(context, root, versions);
  await releaseClaims(context, intent.declared, change);
  await undoDepartures(context, intent.departures, change);
}

/** Gives up a claim of locations that have got no row. */
export async function releaseClaims(
  context: CatalogContext,
  locations: readonly string[],
  claim: string,
): Promise<void> {
  for (const location of locations)
    if ((await ownerOf(context, location)) === undefined) await context.layout.unclaim(location, claim);
}

/** Finishes an intent after its commit; `deleted` is the number of manifests that each of its deletions deleted. */
export async function complete(
  context: ChangeContext,
  intent: Intent,
  finisher: Finisher,
): Promise<{ deleted: number[]; tidy: boolean }> {
  const { store, layout } = context;
  const deleted: number[] = [];
  for (const { dataset, ranges, last = {} } of intent.deletions) {
    const bounded = ranges.map(({ start, end }) => ({ start: BigInt(start), end: BigInt(end) }));
    const checks: DeletionChecks = {
      isStillAsked: () => mayGoOn(finisher),
      isMeant: (version, bytes) => last[String(version)] === digestOf(bytes),
    };
    deleted.push(await dropVersions(context, refOf(context, dataset), bounded, checks));
  }
  for (const location of intent.declared) {
    const owner = await ownerOf(context, location);
    if (owner === undefined) continue;
    if (isHiddenUnder(location, owner)) await updateMark(context, location);
    else await layout.reveal(location, finisher.change);
  }
  for (const location of intent.locations) await updateMark(context, location);
  for (const { stagedKey } of intent.versions)
    if (stagedKey !== null) await store.delete(stagedKey).catch(() => {});
  return { deleted, tidy: await finishDepartures(context, intent.departures, finisher) };
}

/** Resolves a change, or logs why that fails, so that others do not wait for it. */
async function tryToResolve(context: ChangeContext, pending: PendingIntent): Promise<void> {
  const { log } = context;
  try {
    log.warn(await resolvePending(context, pending), "resolved an interrupted change");
  } catch (error) {
    log.error({ err: error, change: pending.id }, "an interrupted change cannot be resolved");
  }
}

/** Resolves the changes that this process or others have abandoned. It logs failures; the next call retries. */
export async function resolveAbandoned(context: ChangeContext): Promise<void> {
  const { catalog, journal, log } = context;
  try {
    for (const pending of await journal.abandoned()) await tryToResolve(context, pending);
    // The verdicts are read before the list of notes, so no verdict of an unfinished change is without a note.
    const { verdicts } = await catalog.read();
    const notes = verdicts.size === 0 ? undefined : await journal.ids();
    for (const id of verdicts.keys()) if (!notes?.has(id)) catalog.forget(id);
  } catch (error) {
    log.error({ err: error }, "an interrupted change cannot be resolved");
  }
}

/** Longest wait for the changes of a table that may have read a version to take back, in milliseconds. */
const DRAIN_MS = 5_000;

/**
 * Takes versions of a table back, the newest first. Changes that may have read them end first: the engine does not notice that a version
 * is gone, and the one that it makes would bring the rows back.
 */
async function takeVersionsBack(
  context: ChangeContext,
  root: string,
  versions: readonly IntendedVersion[],
): Promise<void> {
  const isPublished = async ({ key, digest, exists }: IntendedVersion) =>
    !exists && digestOf((await context.store.get(key)) ?? new Uint8Array()) === digest;
  const published: IntendedVersion[] = [];
  for (const version of versions) if (await isPublished(version)) published.unshift(version);
  if (published.length === 0) return;
  const open = await context.histories.close(nameAt(context, root), DRAIN_MS);
  try {
    for (const version of published) await takeNewestBack(context, version);
  } finally {
    open();
  }
}

/** Returns the name of the table in a directory, as `$` joins it. */
function nameAt({ catalog, layout, store }: TableContext, root: string): string {
  const location = layout.relativeTo(store.uriOf(root)) ?? root;
  return catalog.known().ownerOf(location) ?? rootName(location);
}

/** Takes a version back if it is this manifest and the newest version, and restores the staged manifest. */
async function takeNewestBack(context: ChangeContext, intended: IntendedVersion): Promise<void> {
  const { store, log } = context;
  const { key, stagedKey, digest } = intended;
  const bytes = await store.get(key);
  if (bytes === undefined || digestOf(bytes) !== digest) return;
  const dataset = refOf(context, intended.dataset);
  const version = BigInt(intended.version);
  const latest = await latestVersion(dataset);
  if (latest?.version !== version) {
    log.error(
      { key, latest: String(latest?.version) },
      "a version cannot be taken back: other versions follow it",
    );
    return;
  }
  if (stagedKey !== null) await store.putIfAbsent(stagedKey, bytes);
  // By now the number may be another version's, if another process has taken this one back.
  const isStillAsked = async () => digestOf((await store.get(key)) ?? new Uint8Array()) === digest;
  await dropVersions(context, dataset, [{ start: version, end: version + 1n }], { isStillAsked });
}

/** Deletes versions, and the engine's handles, which may be open at a deleted version. */
export async function dropVersions(
  { engine, store }: Pick<TableContext, "engine" | "store">,
  dataset: DatasetRef,
  ranges: readonly VersionRange[],
  checks?: DeletionChecks,
): Promise<number> {
  try {
    return await deleteVersions(dataset, ranges, checks);
  } finally {
    engine.forget(store.uriOf(dataset.root));
  }
}

function refOf({ store }: TableContext, { root, branch }: IntendedDataset): DatasetRef {
  return { store, root, branch: branch ?? undefined };
}
