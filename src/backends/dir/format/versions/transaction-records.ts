import { fromBinary } from "@bufbuild/protobuf";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import { TransactionSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { transactionKey } from "../dataset.ts";
import { damagedFile } from "../files/damaged-file.ts";
import type { ManifestFile } from "../files/manifest-file.ts";
import { readManifestFile, readSection } from "../files/manifest-file.ts";
import { findVersions, readVersionIfThere } from "./version-files.ts";

/** Property of a transaction that is its commit message. */
export const COMMIT_MESSAGE = "__lance_commit_message";

/** The transaction that made a version. */
export interface TransactionRecord {
  /** The version that it made. */
  readonly version: bigint;
  readonly uuid: string;
  /** The version that it is based on. */
  readonly readVersion: bigint;
  /** The engine's name of the operation, for example `Append`; `Unknown` for an unknown operation. */
  readonly operation: string;
  readonly tag: string | undefined;
  /** Properties that the writer set; the commit message is {@link COMMIT_MESSAGE}. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Number of manifests that the search for a uuid reads concurrently. */
const SEARCH_WIDTH = 16;

/**
 * Finds a transaction by the id of DescribeTransaction: the number of the version that it made, or its uuid, for which
 * it searches the versions from the newest on (contract 7, row 53).
 *
 * @throws LanceError TransactionNotFound if there is none, or if its version has been deleted
 */
export async function findTransaction(dataset: DatasetRef, id: string): Promise<TransactionRecord> {
  const found = /^\d+$/.test(id) ? await findByVersion(dataset, BigInt(id)) : await findByUuid(dataset, id);
  if (!found) throw new LanceError("TransactionNotFound", `there is no transaction ${id}`);
  return found;
}

/**
 * Reads the transaction that made a version: from the manifest's file, or else from a separate file.
 *
 * @returns `undefined` if the writer recorded none
 * @throws LanceError DataLoss if its file is missing or corrupt
 */
export async function readTransaction(
  dataset: DatasetRef,
  file: ManifestFile,
): Promise<TransactionRecord | undefined> {
  const transaction = await readTransactionMessage(dataset, file);
  if (transaction !== undefined) return record(file.manifest.version, transaction);
  const { transactionFile } = file.manifest;
  if (transactionFile === "") return undefined;
  throw damagedFile(file.key, `names ${transactionFile}, which is missing`);
}

/** Reads the message of {@link readTransaction}; undefined also if its file is missing. */
export async function readTransactionMessage(
  dataset: DatasetRef,
  file: ManifestFile,
): Promise<Transaction | undefined> {
  const { transactionSection, transactionSectionDeprecated, transactionFile } = file.manifest;
  const section = transactionSection ?? transactionSectionDeprecated;
  if (section !== undefined) return decode(file.key, await readSection(file, section));
  if (transactionFile === "") return undefined;
  const key = transactionKey(dataset, transactionFile);
  const bytes = await dataset.store.get(key);
  return bytes && decode(key, bytes);
}

async function findByVersion(dataset: DatasetRef, version: bigint): Promise<TransactionRecord | undefined> {
  const file = await readVersionIfThere(dataset, version);
  return file && readTransaction(dataset, file);
}

async function findByUuid(dataset: DatasetRef, uuid: string): Promise<TransactionRecord | undefined> {
  const versions = await findVersions(dataset);
  versions.sort((a, b) => (a.version < b.version ? 1 : -1));
  for (let i = 0; i < versions.length; i += SEARCH_WIDTH) {
    const some = versions.slice(i, i + SEARCH_WIDTH);
    const files = await Promise.all(some.map(({ key }) => readManifestFile(dataset.store, key)));
    for (const file of files) {
      if (!file || !mayBe(file, uuid)) continue;
      const found = await readTransaction(dataset, file);
      if (found?.uuid === uuid) return found;
    }
  }
  return undefined;
}

/** A transaction's file is named `<read version>-<uuid>.txn`, so files with other names need not be read. */
function mayBe({ manifest: { transactionFile } }: ManifestFile, uuid: string): boolean {
  return transactionFile === "" || transactionFile.endsWith(`-${uuid}.txn`);
}

function decode(key: string, bytes: Uint8Array): Transaction {
  try {
    return fromBinary(TransactionSchema, bytes);
  } catch (error) {
    throw damagedFile(key, "holds no transaction", error);
  }
}

function record(version: bigint, transaction: Transaction): TransactionRecord {
  const { uuid, readVersion, tag, transactionProperties: properties } = transaction;
  const operation = operationName(transaction);
  return { version, uuid, readVersion, operation, tag: tag === "" ? undefined : tag, properties };
}

/** Names of the protobuf messages; as in the Lance catalog, dropping an index has a separate name. */
function operationName({ operation }: Transaction): string {
  if (operation.case === undefined) return "Unknown";
  if (operation.case === "createIndex") {
    const { newIndices, removedIndices } = operation.value;
    return newIndices.length === 0 && removedIndices.length > 0 ? "DropIndex" : "CreateIndex";
  }
  return operation.case.charAt(0).toUpperCase() + operation.case.slice(1);
}
