import type { Logger } from "pino";
import type { DatasetRef } from "../../format/dataset.ts";
import { syncVersions } from "../../format/versions/make-durable.ts";
import { takeUnknownVersions } from "../../format/versions/version-ledger.ts";

/**
 * Adopts versions of a table with managed versioning that were committed without this process: makes them durable
 * together, before a commit builds on them or an answer names them, and writes them to the log.
 *
 * Their files are already part of the history, which all writers share, so nothing else has to be done. Another gateway
 * may have committed them, or a client that writes to the storage itself.
 *
 * @param latest the newest version
 * @throws UnsyncedError
 */
export async function adoptVersions(log: Logger, dataset: DatasetRef, latest: bigint): Promise<void> {
  const { versions, first, forget } = takeUnknownVersions(dataset, latest);
  const [from, to] = [versions[0], versions.at(-1)];
  if (from === undefined) return;
  try {
    await syncVersions(dataset, versions);
  } catch (error) {
    forget();
    throw error;
  }
  if (first) return;
  const facts = { table: dataset.root, branch: dataset.branch, from: Number(from), to: Number(to) };
  log.info(facts, "adopted versions of a table that were committed without this gateway");
}
