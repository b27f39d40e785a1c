import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { ManifestSchema } from "../../../gen/lance/format/table_pb.ts";
import { TransactionSchema } from "../../../gen/lance/format/transaction_pb.ts";
import { createLayout } from "../catalog/base/base-layout.ts";
import type { Verdict } from "../catalog/state/verdicts.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { manifestKey } from "../format/dataset.ts";
import { buildManifestFile, readInheritedPart } from "../format/files/manifest-file.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { readVersion } from "../format/versions/version-files.ts";
import { openDirectory } from "../open-directory.ts";
import { silent } from "../test-support.ts";
import type { Intent } from "./intent.ts";
import { identifyProcess, type Owner } from "./owner.ts";

/** A staged manifest, in the terms of a request. */
export interface StagedNext {
  readonly version: bigint;
  readonly manifestPath: string;
  /** Key of the manifest as a version. */
  readonly key: string;
  readonly bytes: Uint8Array;
}

/** Stages the next version of a dataset, or a later one, which differs from the newest only in a note. */
export async function stageNext(dataset: DatasetRef, note: string, ahead = 1n): Promise<StagedNext> {
  const file = await readVersion(dataset);
  const manifest = clone(ManifestSchema, file.manifest);
  manifest.version += ahead;
  manifest.tableMetadata = { ...manifest.tableMetadata, note };
  const inherited = await readInheritedPart(file);
  manifest.transactionSection = BigInt(inherited.byteLength);
  manifest.transactionFile = "";
  const transaction = create(TransactionSchema, { readVersion: manifest.version - 1n, uuid: note });
  const bytes = buildManifestFile(
    inherited,
    toBinary(TransactionSchema, transaction),
    manifest,
    file.signature,
  );
  const key = manifestKey(dataset, manifest.version, "V2");
  const manifestPath = `${key}-${note}`;
  await dataset.store.put(manifestPath, bytes);
  return { version: manifest.version, manifestPath, key, bytes };
}

/** An owner on this machine that has ended: no process has its number. */
export const ended: Owner = { ...identifyProcess(), pid: 2 ** 22 + 1 };

const LEFT = "left";

/** Leaves the files of a process that ends in the middle of its work. */
export async function leaveIntent(root: string, intent: Partial<Intent>, owner = ended): Promise<string> {
  const directory = join(root, "data", ".intents");
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${LEFT}.json`);
  const whole = { versions: [], deletions: [], locations: [], declared: [], departures: [], ...intent };
  await writeFile(path, JSON.stringify({ owner, intent: whole }));
  return path;
}

/**
 * Leaves the mark of a directory that a change is about to remove.
 *
 * @param change Default: that of {@link leaveIntent}
 */
export async function leaveMark(root: string, location: string, change = LEFT): Promise<void> {
  const store = createLocalStore();
  await createLayout(store, store.keyOf(join(root, "data"))).putAside(location, change);
}

/** Records the verdict of the change that {@link leaveIntent} leaves. */
export async function leaveVerdict(root: string, verdict: Verdict): Promise<void> {
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  await context.catalog.mutate((draft) => draft.record(LEFT, verdict));
  await close();
}
