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
import {
  columnsOfText,
  schemaOfText,
  type TextOptions,
  textBatches,
  textToArrow,
} from "../../client/text/text-to-arrow.ts";
import { typeOfName } from "../../client/text/type-names.ts";
import { NEXT, type PieceNews } from "../shell/worker.ts";
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

/** What the worker reports beside the pieces of the rows. */
export type ConversionNews =
  | { readonly kind: "progress"; readonly part: number }
  /** @property names the columns of a text, before their types are known. */
  | { readonly kind: "columns"; readonly names: readonly string[] }
  /** @property rows the first rows, as an Arrow IPC stream. */
  | { readonly kind: "seen"; readonly rows: Uint8Array };

/** Rows that are shown before an import. */
const SEEN_ROWS = 10;

const tell = (news: ConversionNews | PieceNews) => postMessage(news);
const tellPart = (part: number) => tell({ kind: "progress", part });

/** The rows of the task, until the page has taken them. */
let pieces: AsyncIterator<Uint8Array> | undefined;

addEventListener("message", async ({ data }: MessageEvent<ConversionTask | typeof NEXT>) => {
  try {
    if (data === NEXT) await tellNext();
    else if (data.step === "look") tell({ kind: "seen", rows: tableToIPC(await firstRows(data), "stream") });
    else pieces = converted(data)[Symbol.asyncIterator]();
  } catch (thrown) {
    tell({ kind: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
});

async function tellNext(): Promise<void> {
  const next = await pieces?.next();
  // A view takes the whole memory behind it along, so that a part of it is copied.
  tell(next === undefined || next.done ? { kind: "end" } : { kind: "piece", bytes: next.value.slice() });
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
  // A column whose values have no common type needs one that somebody chooses.
  const names = await columnsOfText(() => bytesOf(file), optionsOf(task, kind));
  tell({ kind: "columns", names });
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
