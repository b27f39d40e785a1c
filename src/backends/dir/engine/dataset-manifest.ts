import { open } from "node:fs/promises";
import { join } from "node:path";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** What the manifest of a dataset's version says that the engine's Node API does not. */
export interface DatasetManifest {
  readonly fragments: number;
  /** Rows that are marked as deleted and still in the files. */
  readonly deletedRows: number;
  /** The table metadata: free entries that are neither configuration nor part of the schema. */
  readonly tableMetadata: Readonly<Record<string, string>>;
}

const MAGIC = "LANC";

/** The end of a manifest file: the place of the manifest, two version numbers, and the magic. */
const TAIL_BYTES = 16;

/** Reads the manifest of a version, in either naming scheme. */
export async function readDatasetManifest(location: string, version: number): Promise<DatasetManifest> {
  const name = String(0xffff_ffff_ffff_ffffn - BigInt(version)).padStart(20, "0");
  const bytes = await readManifestFile(join(location, "_versions", `${name}.manifest`)).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return readManifestFile(join(location, "_versions", `${version}.manifest`));
  });
  return decodeManifest(bytes);
}

async function readManifestFile(path: string): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const bytes = await file.readFile();
    const tail = bytes.byteLength - TAIL_BYTES;
    if (tail < 0 || bytes.toString("latin1", tail + 12) !== MAGIC) throw new Error(`${path} is no manifest`);
    const start = Number(bytes.readBigUInt64LE(tail));
    const length = bytes.readUInt32LE(start);
    return bytes.subarray(start + 4, start + 4 + length);
  } finally {
    await file.close();
  }
}

/** The fields of `lance.table.Manifest` and of the messages in it that are read here. */
const FIELD = { fragments: 2, tableMetadata: 19, deletionFile: 3, deletedRows: 4, key: 1, value: 2 } as const;

function decodeManifest(bytes: Uint8Array): DatasetManifest {
  let [fragments, deletedRows] = [0, 0];
  const tableMetadata: Record<string, string> = {};
  for (const [field, value] of fieldsOf(bytes)) {
    if (!(value instanceof Uint8Array)) continue;
    if (field === FIELD.fragments) {
      fragments++;
      deletedRows += countDeleted(value);
    } else if (field === FIELD.tableMetadata) {
      const entry = new Map(fieldsOf(value));
      tableMetadata[textOf(entry.get(FIELD.key))] = textOf(entry.get(FIELD.value));
    }
  }
  return { fragments, deletedRows, tableMetadata };
}

function countDeleted(fragment: Uint8Array): number {
  const deletion = new Map(fieldsOf(fragment)).get(FIELD.deletionFile);
  if (!(deletion instanceof Uint8Array)) return 0;
  return Number(new Map(fieldsOf(deletion)).get(FIELD.deletedRows) ?? 0);
}

/** The fields of a message: bytes for strings and messages, numbers for varints; others are skipped. */
function* fieldsOf(bytes: Uint8Array): Generator<[field: number, value: Uint8Array | bigint]> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (type === WireType.LengthDelimited) yield [field, reader.bytes()];
    else if (type === WireType.Varint) yield [field, BigInt(reader.uint64())];
    else reader.skip(type, field);
  }
}

function textOf(value: Uint8Array | bigint | undefined): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : "";
}
