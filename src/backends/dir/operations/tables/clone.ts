import { create } from "@bufbuild/protobuf";
import {
  type CloneTableRequest,
  CloneTableResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { type DatasetRef, dataDirectory, transactionKey } from "../../format/dataset.ts";
import { damagedFile } from "../../format/files/damaged-file.ts";
import { readSegments } from "../../format/files/index-section.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { listTree } from "../../format/storage.ts";
import { readTag, tagNotFound } from "../../format/versions/refs/refs.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { writeVersionHint } from "../../format/versions/version-hint.ts";
import { noteOwnVersion } from "../../format/versions/version-ledger.ts";
import { readParts } from "../../format/versions/version-parts.ts";
import type { CatalogDataContext } from "../context.ts";
import { createApart } from "../rows/create-new.ts";
import { requireTable } from "./find-table.ts";
import { duringWork } from "./long-work.ts";
import { planPrivateClaim } from "./naming/plan-claim.ts";
import { tableAt } from "./naming/table-at.ts";
import { datasetOf, withData } from "./open-data.ts";

/** The operation that makes a table from a version of another one; see docs/adr/0009. */
export function createCloneOperations(context: CatalogDataContext): Pick<LanceDbExtensions, "cloneTable"> {
  const { store } = context;
  return {
    async cloneTable(request, { id, signal }) {
      const claim = await planPrivateClaim(context, id);
      const sourceId = await tableAt(context, request.sourceLocation);
      if (sourceId === undefined) throw sourceNotFound(request.sourceLocation);
      const { location } = await requireTable(context, { id: sourceId });
      const { path, version } = await untilAborted(
        duringWork(context, { id: sourceId, location }, async (source) => {
          const { dataset, file } = await readSource(context, source, request);
          const { version } = file.manifest;
          const stage = async (to: string) => {
            const target: DatasetRef = { store, root: store.keyOf(to) };
            await copyVersion(dataset, file, target, { mayLink: request.isShallow ?? false, signal });
            return Number(version);
          };
          // Pruning keeps a version that is in use.
          return withData(context, source, { version, branch: dataset.branch }, () =>
            createApart(context, claim, { stage }),
          );
        }),
        signal,
      );
      noteOwnVersion({ store, root: store.keyOf(path) }, BigInt(version));
      return create(CloneTableResponseSchema, { location: path, version: BigInt(version) });
    },
  };
}

/** Reads the version that a request names. */
async function readSource(
  context: CatalogDataContext,
  source: FoundTable,
  { sourceVersion, sourceTag }: CloneTableRequest,
): Promise<{ readonly dataset: DatasetRef; readonly file: ManifestFile }> {
  if (sourceVersion !== undefined && sourceTag !== undefined) {
    throw new LanceError("InvalidInput", "Cannot specify both source_version and source_tag");
  }
  const main = datasetOf(context, source);
  if (sourceTag === undefined) return { dataset: main, file: await readVersion(main, sourceVersion) };
  const tag = await readTag(main, sourceTag);
  if (tag === undefined) throw tagNotFound(sourceTag);
  const dataset = datasetOf(context, source, tag.branch);
  return { dataset, file: await readVersion(dataset, tag.version) };
}

function sourceNotFound(place: string): LanceError {
  return new LanceError(
    "TableNotFound",
    `Table '${place}' was not found: source_location is not that of a table here`,
  );
}

/** Options of a copy. */
interface CopyOptions {
  /** Whether the copy may share files with its source on a disk. */
  readonly mayLink: boolean;
  /** Ends the work early. */
  readonly signal: AbortSignal;
}

/** Number of files that are copied concurrently. */
const COPIES = 8;

/** Index of a table that takes writes through a log; it is about files that no version names. */
const LOG_INDEX = "__lance_mem_wal";

/**
 * Copies a version with everything that it needs to a place without a dataset, where it keeps its number and its bytes.
 * Readers see nothing before the manifest, which is last. An interrupted copy leaves files without a version.
 *
 * @throws LanceError Unsupported for a version that needs files of other tables or newer software; ConcurrentModification
 *   if the version is deleted meanwhile; DataLoss if one of its files is missing
 */
async function copyVersion(
  source: DatasetRef,
  file: ManifestFile,
  target: DatasetRef,
  { mayLink, signal }: CopyOptions,
): Promise<void> {
  const { store } = source;
  await checkOwnFiles(file);
  const parts = await readParts(source, file);
  if (parts === undefined) throw deletedMeanwhile();
  const keys = [...parts.files.keys()];
  // The engine does without the record of a transaction.
  const transaction = transactionKey(source, file.manifest.transactionFile);
  for (const directory of parts.directories.keys())
    keys.push(...(await listTree(store, directory)).map((name) => `${directory}/${name}`));

  async function copy(key: string): Promise<void> {
    signal.throwIfAborted();
    const to = dataDirectory(target) + key.slice(dataDirectory(source).length);
    if (mayLink && (await store.files?.link(key, to))) return;
    if ((await store.copy(key, to)) || key === transaction) return;
    const isDeleted = (await store.head(file.key)) === undefined;
    throw isDeleted ? deletedMeanwhile() : damagedFile(key, "is missing");
  }
  await forEachOf(keys, COPIES, copy);
  await copy(file.key);
  await writeVersionHint(target, file.manifest.version);
}

/** @throws LanceError Unsupported */
async function checkOwnFiles(file: ManifestFile): Promise<void> {
  if (file.manifest.basePaths.length > 0)
    throw new LanceError("Unsupported", "the version has files in the directory of another table or branch");
  if ((await readSegments(file)).some(({ name }) => name === LOG_INDEX))
    throw new LanceError(
      "Unsupported",
      "the table takes writes through a log, whose rows a copy would not have",
    );
}

function deletedMeanwhile(): LanceError {
  return new LanceError("ConcurrentModification", "the version was deleted while it was copied");
}
