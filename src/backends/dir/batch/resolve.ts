import { isRootDirectory } from "../catalog/base-layout.ts";
import type { DirContext } from "../context.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { deleteVersions, type VersionRange } from "../format/delete-versions.ts";
import { latestVersion } from "../format/version-files.ts";
import { type Finisher, finishDepartures, ownerOf, settleMark, undoDepartures } from "./departures.ts";
import { digestOf, type IntendedDataset, type IntendedVersion, type Intent } from "./intent.ts";
import type { PendingIntent } from "./journal.ts";

/** What has come of an intent. */
export interface Settled {
  readonly committed: boolean;
  /** Whether its note is gone; otherwise it is looked at again later, and what is left to do has been logged. */
  readonly done: boolean;
}

/**
 * Completes a change of a process that has ended or fallen silent, or takes it back. Its verdict in the manifest
 * decides: recording that it is refused keeps a slow owner from committing, and finds out if it has.
 *
 * Repeating it changes nothing more, so it does not matter who does it, or how often.
 */
export async function settle(context: DirContext, pending: PendingIntent): Promise<Settled> {
  const { catalog } = context;
  const committed = (await catalog.mutate((draft) => draft.record(pending.id, "refused"))) === "committed";
  // A verdict is forgotten after its note is gone, so only with the note does this one count.
  if (!(await pending.isOpen())) {
    catalog.forget(pending.id);
    return { committed, done: true };
  }
  // What a slow owner still publishes is taken back at the next look.
  const done = committed
    ? (await complete(context, pending.intent, "successor")).tidy
    : await takeBack(context, pending.intent).then(pending.isOver);
  if (done) {
    await pending.end();
    catalog.forget(pending.id);
  }
  return { committed, done };
}

/** Undoes what was done for an intent that is refused. Nothing is removed but what the intent itself made. */
export async function takeBack(context: DirContext, intent: Intent): Promise<void> {
  for (const version of [...intent.versions].reverse()) await takeVersionBack(context, version);
  for (const location of intent.declared) {
    // In the root it may be the mark of somebody else, and it is hidden there.
    if (isRootDirectory(location) || (await ownerOf(context, location)) !== undefined) continue;
    await context.layout.unreserve(location);
  }
  await undoDepartures(context, intent.departures);
}

/** Does what follows the commit of an intent; `deleted` is how many manifests each of its deletions deleted. */
export async function complete(
  context: DirContext,
  intent: Intent,
  finisher: Finisher,
): Promise<{ deleted: number[]; tidy: boolean }> {
  const { store, layout } = context;
  const deleted: number[] = [];
  for (const { dataset, ranges } of intent.deletions) {
    const bounded = ranges.map(({ start, end }) => ({ start: BigInt(start), end: BigInt(end) }));
    deleted.push(await dropVersions(context, refOf(context, dataset), bounded));
  }
  for (const location of intent.declared) {
    if ((await ownerOf(context, location)) !== undefined) await layout.reveal(location);
  }
  for (const location of intent.locations) await settleMark(context, location);
  for (const { stagedKey } of intent.versions)
    if (stagedKey !== null) await store.delete(stagedKey).catch(() => {});
  return { deleted, tidy: await finishDepartures(context, intent.departures, finisher) };
}

/** Settles what other processes, or this one, left behind; failures are logged, and tried again another time. */
export async function settleAbandoned(context: DirContext): Promise<void> {
  const { catalog, journal, log } = context;
  try {
    for (const pending of await journal.abandoned()) {
      const settled = await settle(context, pending);
      log.warn(settled, "a change that was cut off has been settled");
    }
    // The verdicts are older than the list of notes: none of a change that goes on can be without one.
    const { verdicts } = await catalog.read();
    const notes = verdicts.size === 0 ? undefined : await journal.ids();
    for (const id of verdicts.keys()) if (!notes?.has(id)) catalog.forget(id);
  } catch (error) {
    log.error({ err: error }, "a change that was cut off cannot be settled");
  }
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
  if (stagedKey !== null) await store.putIfAbsent(stagedKey, bytes);
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

function refOf({ store }: DirContext, { root, branch }: IntendedDataset): DatasetRef {
  return { store, root, branch: branch ?? undefined };
}
