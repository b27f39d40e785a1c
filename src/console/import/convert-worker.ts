// Reads files and converts them to Arrow beside the page, which stays responsive.

import * as arrow from "apache-arrow";
import {
  type RecordBatch,
  RecordBatchReader,
  type Schema,
  Table,
  tableFromIPC,
  tableToIPC,
} from "apache-arrow";
import { schemaOfText, type TextOptions, textBatches, textToArrow } from "../../client/text/text-to-arrow.ts";
import { typeOfName } from "../../client/text/type-names.ts";
import type { FileKind } from "./file-kinds.ts";
import { openParquet } from "./parquet.ts";

/** How the values of a text are read. */
export interface TextChoices {
  /** Encoding of the text. Default: that of its byte order mark, or else UTF-8. */
  readonly encoding: string | undefined;
  /** Names of types that were chosen for columns, by the columns. */
  readonly types: Readonly<Record<string, string>>;
  readonly isRounded: boolean;
}

/** Task of the worker. */
export interface ConversionTask {
  /** Whether the first rows are read, or all. */
  readonly step: "look" | "convert";
  readonly file: File;
  readonly kind: FileKind;
  readonly choices: TextChoices;
  /** Schema that the rows have as an Arrow IPC stream. Default: the values decide about it. */
  readonly schema: Uint8Array | undefined;
  /** Whether the schema is that of a table, whose columns the rows may leave out. */
  readonly isForTable: boolean;
}

/** What the worker reports. */
export type ConversionNews =
  | { readonly kind: "progress"; readonly part: number }
  /** @property rows the first rows, as an Arrow IPC stream. */
  | { readonly kind: "seen"; readonly rows: Uint8Array }
  | { readonly kind: "done"; readonly rows: Blob }
  | { readonly kind: "failed"; readonly message: string };

/** Rows that are shown before an import. */
const SEEN_ROWS = 10;

const tell = (news: ConversionNews) => postMessage(news);
const tellPart = (part: number) => tell({ kind: "progress", part });

addEventListener("message", async ({ data }: MessageEvent<ConversionTask>) => {
  try {
    if (data.step === "look") tell({ kind: "seen", rows: tableToIPC(await firstRows(data), "stream") });
    else {
      tell({ kind: "done", rows: await collect(converted(data)) });
    }
  } catch (thrown) {
    tell({ kind: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
});

/** Bytes that the worker keeps before the browser takes them over, which may put them on a disk. */
const KEPT_BYTES = 16 * 2 ** 20;

/** Joins the pieces of a file, of which the memory of the worker has few at a time. */
async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Blob> {
  const taken: Blob[] = [];
  let [kept, bytes]: [Uint8Array<ArrayBuffer>[], number] = [[], 0];
  for await (const piece of pieces) {
    kept.push(piece as Uint8Array<ArrayBuffer>);
    bytes += piece.byteLength;
    if (bytes < KEPT_BYTES) continue;
    taken.push(new Blob(kept));
    [kept, bytes] = [[], 0];
  }
  return new Blob([...taken, ...kept]);
}

async function firstRows(task: ConversionTask): Promise<Table> {
  const { file, kind } = task;
  if (kind === "arrow") {
    const reader = await RecordBatchReader.from(bytesOf(file));
    await reader.open();
    return firstOf(reader, () => reader.schema);
  }
  if (kind === "parquet") {
    const { schema, batches } = await openParquet(file, () => {}, SEEN_ROWS);
    return firstOf(batches(), () => schema);
  }
  const schema = await schemaOf(task);
  return firstOf(
    textBatches(() => bytesOf(file), schema, optionsOf(task, kind)),
    () => schema,
  );
}

/** Reads the first batch alone; without any the table has the schema. */
async function firstOf(batches: AsyncIterable<RecordBatch>, schema: () => Schema): Promise<Table> {
  for await (const batch of batches) return new Table([batch]).slice(0, SEEN_ROWS);
  return new Table(schema());
}

async function* converted(task: ConversionTask): AsyncIterable<Uint8Array> {
  const { file, kind } = task;
  if (kind === "arrow") return yield* bytesOf(file);
  if (kind === "parquet") {
    const { rows } = await openParquet(file, tellPart);
    return yield* rows();
  }
  yield* textToArrow(() => bytesOf(file, tellPart), await schemaOf(task), optionsOf(task, kind));
}

/** Returns the schema of a text; its values are read for that, unless it is known. */
async function schemaOf(task: ConversionTask): Promise<Schema> {
  const { file, kind, schema } = task;
  if (schema !== undefined) return tableFromIPC(schema).schema;
  return schemaOfText(() => bytesOf(file, tellPart), optionsOf(task, kind as TextOptions["format"]));
}

function optionsOf({ choices, isForTable }: ConversionTask, format: TextOptions["format"]): TextOptions {
  const types = Object.entries(choices.types).map(([name, type]) => [name, typeOfName(arrow, type)] as const);
  return { ...choices, format, isForTable, types: new Map(types) };
}

/** Reads a file piece by piece. */
async function* bytesOf(file: File, onPart: (part: number) => void = () => {}): AsyncIterable<Uint8Array> {
  const reader = file.stream().getReader();
  let bytes = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      yield next.value;
      bytes += next.value.byteLength;
      onPart(bytes / file.size);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}
