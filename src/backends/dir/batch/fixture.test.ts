import { clone, create, toBinary } from "@bufbuild/protobuf";
import { ManifestSchema } from "../../../gen/lance/format/table_pb.ts";
import { TransactionSchema } from "../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../format/layout.ts";
import { manifestKey } from "../format/layout.ts";
import { buildManifestFile, readInheritedPart } from "../format/manifest-file.ts";
import { readVersion } from "../format/versions.ts";

/** A staged manifest, in the terms of a request. */
export interface StagedNext {
  readonly version: bigint;
  readonly manifestPath: string;
  /** Where it will be as a version. */
  readonly key: string;
  readonly bytes: Uint8Array;
}

/** Stages the next version of a dataset, which differs from the newest in a note only. */
export async function stageNext(dataset: DatasetRef, note: string): Promise<StagedNext> {
  const file = await readVersion(dataset);
  const manifest = clone(ManifestSchema, file.manifest);
  manifest.version += 1n;
  manifest.tableMetadata = { ...manifest.tableMetadata, note };
  const inherited = await readInheritedPart(file);
  manifest.transactionSection = BigInt(inherited.byteLength);
  manifest.transactionFile = "";
  const transaction = create(TransactionSchema, { readVersion: file.manifest.version, uuid: note });
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
