import { randomUUID } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { IndexMetadata, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import { TransactionSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { createPace, inSlices } from "../../../../runtime/pace.ts";
import {
  type DatasetRef,
  FIRST_DETACHED_VERSION,
  manifestKey,
  type NamingScheme,
  parseManifestName,
  transactionKey,
} from "../dataset.ts";
import { encodeIndices, readSegments } from "../files/index-section.ts";
import { FLAG_NO_TRANSACTION_FILES } from "../files/manifest.ts";
import {
  type ManifestFile,
  manifestFileOf,
  manifestFileSteps,
  readInheritedPart,
} from "../files/manifest-file.ts";

/** A version that is ready to be published. */
export interface NextVersion {
  /** The version as its readers find it. */
  readonly file: ManifestFile;
  readonly key: string;
  readonly scheme: NamingScheme;
  readonly bytes: Uint8Array;
  /** UUID of the transaction. */
  readonly transactionId: string;
  /** File of the transaction, which must exist before the version does; undefined if the table has none. */
  readonly transaction: { readonly key: string; readonly bytes: Uint8Array } | undefined;
}

/** A change from a version to the next. */
export interface Change {
  /** The operation that the transaction records. */
  readonly operation: Transaction["operation"];
  /** Whether the next version drops all indices. Default: false. */
  readonly dropsIndices?: boolean;
  /** Returns the indices of the next version for those of the previous one. Default: they remain. */
  readonly changeIndices?: (indices: readonly IndexMetadata[]) => readonly IndexMetadata[];
  /** Properties of the transaction. Default: none. */
  readonly properties?: Readonly<Record<string, string>>;
}

/**
 * Builds the version after another one.
 *
 * The version's file contains the transaction. A second file repeats it for older engines, which look for it there.
 *
 * @param base the previous version, whose naming scheme the new one keeps; version 0 for a first version, which
 *   inherits nothing
 * @param manifest the content of the version, except for the fields that differ in each version; it is not changed
 */
export async function buildNextVersion(
  dataset: DatasetRef,
  base: ManifestFile,
  manifest: Manifest,
  { operation, dropsIndices = false, changeIndices, properties = {} }: Change,
): Promise<NextVersion> {
  const { version: readVersion } = base.manifest;
  const version = readVersion + 1n;
  if (version >= FIRST_DETACHED_VERSION) throw new Error(`${base.key} is of the last version that can be`);
  const kept = dropsIndices || readVersion === 0n ? new Uint8Array() : await readInheritedPart(base);
  const section = changeIndices && encodeIndices(changeIndices(await readSegments(base)));
  const inherited = section === undefined ? kept : Buffer.concat([kept, section]);
  const uuid = randomUUID();
  const writesFile = (manifest.writerFeatureFlags & FLAG_NO_TRANSACTION_FILES) === 0n;
  const next: Manifest = {
    ...manifest,
    version,
    timestamp: timestampFromMs(Date.now()),
    tag: "",
    versionAuxData: 0n,
    transactionFile: writesFile ? `${readVersion}-${uuid}.txn` : "",
    transactionSection: BigInt(inherited.byteLength),
  };
  delete next.transactionSectionDeprecated;
  if (dropsIndices) delete next.indexSection;
  if (section !== undefined) next.indexSection = BigInt(kept.byteLength);
  const message = create(TransactionSchema, {
    readVersion,
    uuid,
    transactionProperties: { ...properties },
    operation,
  });
  const pace = createPace();
  const transaction = toBinary(TransactionSchema, message);
  // Both may have thousands of fields or fragments.
  await pace.pauseIfDue();
  const bytes = await inSlices(manifestFileSteps(inherited, transaction, next, base.signature));
  const scheme = parseManifestName(base.key.slice(base.key.lastIndexOf("/") + 1))?.scheme ?? "V2";
  const key = manifestKey(dataset, version, scheme);
  return {
    file: manifestFileOf(key, bytes, next),
    key,
    scheme,
    bytes,
    transactionId: uuid,
    transaction: writesFile
      ? { key: transactionKey(dataset, next.transactionFile), bytes: transaction }
      : undefined,
  };
}
