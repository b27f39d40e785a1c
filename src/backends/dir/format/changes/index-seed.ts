import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Field, FieldSchema } from "../../../../gen/lance/format/file_pb.ts";
import { type IndexMetadata, IndexMetadataSchema } from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type DatasetRef, dataDirectory } from "../dataset.ts";
import { createFieldFinder } from "../files/manifest.ts";
import { encodeEmptyFile } from "../files/text-file.ts";
import { readVersion } from "../versions/version-files.ts";
import { commitChange } from "./commit.ts";

/*
 * The engine brings any index up to date, but its Node API begins only some types. An index of another type begins
 * here: with the files that the engine itself writes for an index of no rows, and a segment that covers no fragment.
 * Queries read all rows until the engine has added them to the index.
 */

/** Parameters of an index, which the engine takes over when it adds rows. */
export interface SeedParameters {
  /** Number of rows of a Bloom filter. Default: 8,192. */
  readonly numberOfItems?: number | undefined;
  /** Share of false positives of a Bloom filter, above 0 and below 1. Default: 0.00057. */
  readonly probability?: number | undefined;
}

/** A type of index, as it begins. */
export interface IndexSeed {
  /** The type of the details in the manifest. */
  readonly typeUrl: string;
  readonly details: Uint8Array;
  readonly fileName: string;
  /** Returns the file of an index of no rows on a field of a type, in the words of the format. */
  file(logicalType: string, parameters: SeedParameters): Uint8Array;
}

/** A set of no rows, in the form of a bitmap for each fragment. */
const NO_ROWS = new Uint8Array(4);

/** The 32-bit Roaring bitmap of no fragments. */
const NO_FRAGMENTS = Uint8Array.of(0x3a, 0x30, 0, 0, 0, 0, 0, 0);

const text = (value: string) => new TextEncoder().encode(value);

/** Returns columns by name and type; a question mark ends the name of a nullable one. */
function columnsOf(...columns: readonly (readonly [name: string, type: string])[]): Field[] {
  return columns.map(([name, logicalType], id) =>
    create(FieldSchema, {
      name: name.replace("?", ""),
      id,
      parentId: -1,
      logicalType,
      nullable: name.endsWith("?"),
    }),
  );
}

/** The types that begin here, by their names in requests. */
export const INDEX_SEEDS: Readonly<Record<"NGRAM" | "ZONEMAP" | "BLOOMFILTER", IndexSeed>> = {
  NGRAM: {
    typeUrl: "/lance.table.NGramIndexDetails",
    details: new Uint8Array(),
    fileName: "ngram_postings.lance",
    file() {
      const [tokens, postings] = columnsOf(["tokens?", "uint32"], ["posting_list", "binary"]);
      const plain = { "lance-encoding:compression": text("none") };
      return encodeEmptyFile({ fields: [tokens as Field, { ...(postings as Field), metadata: plain }] });
    },
  },
  ZONEMAP: {
    typeUrl: "/lance.table.ZoneMapIndexDetails",
    // 8,192 rows in a zone, and a bitmap of nulls.
    details: Uint8Array.of(0x08, 0x80, 0x40, 0x10, 0x00, 0x18, 0x01),
    fileName: "zonemap.lance",
    file(logicalType) {
      const fields = columnsOf(
        ["min?", logicalType],
        ["max?", logicalType],
        ["null_count", "uint32"],
        ["nan_count", "uint32"],
        ["fragment_id", "uint64"],
        ["zone_start", "uint64"],
        ["zone_length", "uint64"],
      );
      const metadata = { rows_per_zone: text("8192"), null_bitmap: text("1") };
      return encodeEmptyFile({ fields, metadata }, [NO_ROWS]);
    },
  },
  BLOOMFILTER: {
    typeUrl: "/lance.index.pb.BloomFilterIndexDetails",
    details: new Uint8Array(),
    fileName: "bloomfilter.lance",
    file(_, { numberOfItems = 8192, probability = 0.00057 }) {
      const fields = columnsOf(
        ["fragment_id", "uint64"],
        ["zone_start", "uint64"],
        ["zone_length", "uint64"],
        ["has_null", "bool"],
        ["bloom_filter_data", "binary"],
      );
      const metadata = {
        bloomfilter_item: text(String(numberOfItems)),
        bloomfilter_probability: text(String(probability)),
        null_bitmap: text("1"),
      };
      return encodeEmptyFile({ fields, metadata }, [NO_ROWS]);
    },
  },
};

/** An index to begin. */
export interface IndexBeginning {
  readonly name: string;
  /** Path of the field. */
  readonly column: string;
  readonly seed: IndexSeed;
  readonly parameters: SeedParameters;
}

/**
 * Begins an index that covers no rows, in place of the indices of its name.
 *
 * @throws LanceError TableColumnNotFound, ConcurrentModification if the column changes meanwhile, and the errors of
 *   {@link commitChange}
 */
export async function beginIndex(
  dataset: DatasetRef,
  { name, column, seed, parameters }: IndexBeginning,
  signal: AbortSignal,
): Promise<void> {
  const id = randomUUID();
  const { logicalType } = createFieldFinder((await readVersion(dataset)).manifest)(column);
  const bytes = seed.file(logicalType, parameters);
  await dataset.store.put(`${dataDirectory(dataset)}/_indices/${id}/${seed.fileName}`, bytes);
  await commitChange(
    dataset,
    (manifest) => {
      const field = createFieldFinder(manifest)(column);
      if (field.logicalType !== logicalType) {
        throw new LanceError("ConcurrentModification", "the column's type changed concurrently");
      }
      const added = create(IndexMetadataSchema, {
        uuid: { uuid: Buffer.from(id.replaceAll("-", ""), "hex") },
        fields: [field.id],
        name,
        datasetVersion: manifest.version,
        fragmentBitmap: NO_FRAGMENTS,
        indexDetails: { typeUrl: seed.typeUrl, value: seed.details },
        indexVersion: 0,
        createdAt: BigInt(Date.now()),
        files: [{ path: seed.fileName, sizeBytes: BigInt(bytes.byteLength) }],
      });
      const value = create(Transaction_CreateIndexSchema, { newIndices: [added] });
      return {
        operation: { case: "createIndex", value },
        changeIndices(indices) {
          const [removed, kept] = [true, false].map((same) =>
            indices.filter((index) => (index.name === name) === same),
          );
          value.removedIndices = removed as IndexMetadata[];
          return [...(kept as IndexMetadata[]), added];
        },
      };
    },
    { signal },
  );
}
