import { isRootDirectory } from "../catalog/layout.ts";
import type { CatalogView } from "../catalog/state.ts";
import { deleteVersions, type VersionRange } from "../format/delete-versions.ts";
import type { DatasetRef } from "../format/layout.ts";
import { latestVersion } from "../format/versions.ts";
import type { DirContext } from "../operations/context.ts";
import { digestOf, type IntendedDataset, type IntendedVersion, type Intent } from "./journal.ts";
import { removeTables } from "./remove-tables.ts";

/** What has come of an intent. */
export interface Settled {
  readonly committed: boolean;
  /** Whether nothing is left to do; what is left has been logged. */
  readonly tidy: boolean;
}

/**
 * Completes an intent or takes it back, by what is there. Repeating it changes nothing more, so it does not
 * matter who does it, or how often.
 */
export async function settle(context: DirContext, intent: Intent): Promise<Settled> {
  const committed = await isCommitted(context, intent);
  if (committed) return { committed, tidy: (await complete(context, intent)).tidy };
  await takeBack(context, intent);
  return { committed, tidy: await settleDepartures(context, intent) };
}

/** Undoes what was done for an intent that is not committed. */
export async function takeBack(context: DirContext, intent: Intent): Promise<void> {
  for (const version of [...intent.versions].reverse()) await takeVersionBack(context, version);
}

/**
 * Lets what is at the locations of departures follow the catalog: it decides by the rows alone, so it is right
 * whether the intent has been committed or not.
 *
 * @returns whether nothing is left to do
 */
export async function settleDepartures(
  context: DirContext,
  { departures = [] }: Pick<Intent, "departures">,
): Promise<boolean> {
  if (departures.length === 0) return true;
  const state = await context.catalog.read();
  const gone = departures.filter(({ location, remove }) => remove && state.ownerOf(location) === undefined);
  for (const { location } of departures) {
    if (!gone.some((each) => each.location === location)) await settleMarkers(context, state, location);
  }
  return removeTables(
    context,
    gone.map(({ location }) => location),
  );
}

/** Marks the directories of departures as no tables before their rows go, or they would show without a row. */
export async function markDepartures(
  { layout }: DirContext,
  { departures = [] }: Pick<Intent, "departures">,
): Promise<void> {
  for (const { location } of departures) {
    if (isRootDirectory(location)) await layout.setDeregistered(location, true);
  }
}

/** Does what follows the commit of an intent; `deleted` is how many manifests each of its deletions deleted. */
export async function complete(
  context: DirContext,
  intent: Intent,
): Promise<{ deleted: number[]; tidy: boolean }> {
  const { store } = context;
  const deleted: number[] = [];
  for (const { dataset, ranges } of intent.deletions) {
    const bounded = ranges.map(({ start, end }) => ({ start: BigInt(start), end: BigInt(end) }));
    deleted.push(await dropVersions(context, refOf(context, dataset), bounded));
  }
  const state = await context.catalog.read();
  for (const location of intent.locations) await settleMarkers(context, state, location);
  for (const { stagedKey } of intent.versions) await store.delete(stagedKey).catch(() => {});
  return { deleted, tidy: await settleDepartures(context, intent) };
}

/** Settles what processes that have ended left behind; failures are logged, and tried again another time. */
export async function settleAbandoned(context: DirContext): Promise<void> {
  const { journal, log } = context;
  try {
    for (const pending of await journal.abandoned()) {
      const { committed, tidy } = await settle(context, pending.intent);
      if (tidy) await pending.end();
      log.warn({ committed, tidy }, "a change that was cut off has been settled");
    }
  } catch (error) {
    log.error({ err: error }, "a change that was cut off cannot be settled");
  }
}

/**
 * The commit of the catalog is the last step that can fail. Without one, it is the last of the versions.
 *
 * Any row that the commit adds is proof of it, because its location is the commit's own. Only where it takes
 * rows away and adds none do the missing rows have to do.
 */
export async function isCommitted(
  { store, catalog }: DirContext,
  { rows, versions }: Intent,
): Promise<boolean> {
  const state = await catalog.read();
  const added = rows.filter(({ location }) => location !== null);
  if (added.length > 0) return added.some((row) => state.get(row.objectId)?.location === row.location);
  if (rows.length > 0) return rows.every(({ objectId }) => state.get(objectId) === undefined);
  for (const { key, digest } of versions) {
    const bytes = await store.get(key);
    if (bytes === undefined || digestOf(bytes) !== digest) return false;
  }
  return true;
}

/** Takes a version back, if it is this one and nobody has built on it; the staged manifest is there again. */
async function takeVersionBack(context: DirContext, intended: IntendedVersion): Promise<void> {
  const { store, log } = context;
  const { key, stagedKey, digest, exists } = intended;
  const bytes = exists ? undefined : await store.get(key);
  if (bytes === undefined || digestOf(bytes) !== digest) return;
  const dataset = refOf(context, intended.dataset);
  const version = BigInt(intended.version);
  const latest = await latestVersion(dataset);
  if (latest?.version !== version) {
    log.error({ key, latest: String(latest?.version) }, "a version cannot be taken back: others build on it");
    return;
  }
  await store.putIfAbsent(stagedKey, bytes);
  await dropVersions(context, dataset, [{ start: version, end: version + 1n }]);
}

/** Deletes versions, and with them what the engine keeps of the table: it may be at one of them. */
export async function dropVersions(
  { engine, store }: DirContext,
  dataset: DatasetRef,
  ranges: readonly VersionRange[],
): Promise<number> {
  try {
    return await deleteVersions(dataset, ranges);
  } finally {
    engine.forget(store.uriOf(dataset.root));
  }
}

/**
 * Lets the marker files of a directory say what the catalog says: implementations that list directories take
 * `<name>.lance` for the root's table of that name, unless it is marked.
 */
async function settleMarkers({ layout }: DirContext, state: CatalogView, location: string): Promise<void> {
  const owner = state.ownerOf(location);
  if (owner !== undefined && !(await layout.exists(location))) await layout.reserve(location);
  if (isRootDirectory(location))
    await layout.setDeregistered(location, owner !== location.slice(0, -".lance".length));
}

function refOf({ store }: DirContext, { root, branch }: IntendedDataset): DatasetRef {
  return { store, root, branch: branch ?? undefined };
}
