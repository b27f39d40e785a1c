import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../gen/lance/format/transaction_pb.ts";
import { TransactionSchema } from "../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { DatasetRef } from "./dataset.ts";
import { manifestKey, parseManifestName, transactionKey } from "./dataset.ts";
import { UnsyncedError } from "./local-errors.ts";
import { FLAG_NO_TRANSACTION_FILES } from "./manifest.ts";
import type { ManifestFile } from "./manifest-file.ts";
import { buildManifestFile, manifestFileOf, readInheritedPart } from "./manifest-file.ts";
import type { ObjectStore } from "./storage.ts";

/** A version that is ready to be published. */
export interface NextVersion {
  /** As a reader of the version will find it. */
  readonly file: ManifestFile;
  readonly bytes: Uint8Array;
  /** The file of the transaction, which has to be there before the version is; undefined if the table has none. */
  readonly transaction: { readonly key: string; readonly bytes: Uint8Array } | undefined;
}

/** How often the bytes of a version are put when the store fails, and the pause between, in milliseconds. */
const PUTS = 3;
const PUT_PAUSE = 200;

/**
 * Builds the version after another one.
 *
 * The transaction is in the manifest's file and in one of its own, which engines look for that are older than its
 * place in the manifest.
 *
 * @param manifest what the version says, but for what is different in each version; it is not changed
 */
export async function buildNextVersion(
  dataset: DatasetRef,
  base: ManifestFile,
  manifest: Manifest,
  operation: Transaction["operation"],
): Promise<NextVersion> {
  const readVersion = base.manifest.version;
  const scheme = parseManifestName(base.key.slice(base.key.lastIndexOf("/") + 1))?.scheme ?? "V2";
  const inherited = await readInheritedPart(base);
  const uuid = randomUUID();
  const writesFile = (manifest.writerFeatureFlags & FLAG_NO_TRANSACTION_FILES) === 0n;
  const next: Manifest = {
    ...manifest,
    version: readVersion + 1n,
    timestamp: timestampFromMs(Date.now()),
    tag: "",
    versionAuxData: 0n,
    transactionFile: writesFile ? `${readVersion}-${uuid}.txn` : "",
    transactionSection: BigInt(inherited.byteLength),
  };
  delete next.transactionSectionDeprecated;
  const message = create(TransactionSchema, { readVersion, uuid, operation });
  const transaction = toBinary(TransactionSchema, message);
  const bytes = buildManifestFile(inherited, transaction, next, base.signature);
  return {
    file: manifestFileOf(manifestKey(dataset, next.version, scheme), bytes, next),
    bytes,
    transaction: writesFile
      ? { key: transactionKey(dataset, next.transactionFile), bytes: transaction }
      : undefined,
  };
}

/**
 * Publishes a version, unless another writer has its number.
 *
 * The store may fail without saying whether it wrote: then what is there is looked at, and the same bytes are put
 * again. The uuid of the transaction makes them different from everybody else's.
 *
 * @param after what has to be written before the version is; its failure is that of the call
 * @returns false if another writer has the number
 * @throws LanceError ServiceUnavailable or what else the store says; the version may be there, or be there later
 */
export async function publishVersion(
  store: ObjectStore,
  { file: { key }, bytes }: NextVersion,
  after: Promise<unknown>,
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      if (await store.putIfAbsent(key, bytes, after)) return true;
      const found = await store.get(key);
      if (found !== undefined) return Buffer.compare(found, bytes) === 0;
      // Taken and yet missing: somebody removed it in between, or the store contradicts itself.
      if (tries < PUTS) await sleep(PUT_PAUSE);
      else break;
    } catch (error) {
      // What can be read now says nothing of the disk.
      if (error instanceof UnsyncedError) throw error;
      // When that has failed, the version was not tried.
      await after;
      const found = await store.get(key).catch(() => undefined);
      if (found !== undefined) return Buffer.compare(found, bytes) === 0;
      if (tries < PUTS) await sleep(PUT_PAUSE);
      else throw unavailable(error);
    }
  }
  throw new LanceError(
    "ServiceUnavailable",
    "the storage of the catalog refuses a version as taken and has none",
  );
}

function unavailable(error: unknown): LanceError {
  if (error instanceof LanceError) return error;
  return new LanceError("ServiceUnavailable", "the storage of the catalog fails", { cause: error });
}
