import { type Schema, Table, tableFromIPC, tableToIPC } from "apache-arrow";
import type { ArrowBytes } from "../../client/rows/arrow-input.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Connection } from "../session/connection.ts";
import { mostUploadBytes, TELL_PERMISSIONS } from "../session/told-facts.ts";
import { formatBytes } from "../shell/format.ts";
import { readFromWorker, runInWorker } from "../shell/worker.ts";
import type { ConversionNews, ConversionTask, TextChoices } from "./convert-worker.ts";
import { kindOfName } from "./file-kinds.ts";

/** The script of the worker that reads files. */
const WORKER = "convert.js";

/** How far an import is. */
export interface Progress {
  readonly step: "converting" | "sending" | "storing";
  /** From 0 to 1. */
  readonly part: number;
}

/** What becomes of the rows of a file. */
export type ImportMode = "create" | "overwrite" | "append";

/** A file, and how it is read. */
export interface Source {
  readonly file: File;
  readonly choices: TextChoices;
  /** Schema of the rows. Default: the values decide about it. */
  readonly schema: Schema | undefined;
  /** Whether the schema is that of a table, whose columns the rows may leave out. */
  readonly isForTable: boolean;
}

interface ImportTask extends Source {
  readonly id: readonly string[];
  readonly mode: ImportMode;
  onProgress(progress: Progress): void;
}

/**
 * Reads the first rows of a file; of a text all values are read, because they decide about its types.
 *
 * @param onColumns called with the names of the columns of a text, also if their types cannot be found
 */
export async function lookAt(
  source: Source,
  signal: AbortSignal,
  onColumns: (names: readonly string[]) => void,
): Promise<Table> {
  const task: ConversionTask = { ...taskOf(source), step: "look" };
  const news = await runInWorker(WORKER, task, (each: ConversionNews) => each.kind === "seen", {
    signal,
    onNews: (each) => !signal.aborted && each.kind === "columns" && onColumns(each.names),
  });
  return tableFromIPC(news.rows);
}

/** Imports a file as a single upload: all of its rows are stored, or none. */
export async function importFile(connection: Connection, task: ImportTask): Promise<void> {
  const { id, mode, onProgress } = task;
  const onPart = (part: number) => onProgress({ step: "converting", part });
  const rows = bounded(
    convertedRows({ ...taskOf(task), step: "convert" }, onPart),
    await mostBytes(connection, id),
  );
  const namespace = connection.uploading((part) =>
    onProgress({ step: part < 1 ? "sending" : "storing", part }),
  );
  if (mode === "append") await namespace.insertIntoTable({ id, mode: "append" }, rows);
  else await namespace.createTable({ id, mode }, rows);
}

/** Asks how much an upload may have. Without an answer, the gateway says it when it refuses the upload. */
async function mostBytes({ namespace }: Connection, id: readonly string[]): Promise<number> {
  const told = await namespace
    .describeNamespace({ id: id.slice(0, -1) }, TELL_PERMISSIONS)
    .catch(() => undefined);
  return (told && mostUploadBytes(told)) ?? Number.POSITIVE_INFINITY;
}

/** Refuses rows that the gateway would refuse: a browser sends all of them before it reads the answer. */
function bounded(rows: ArrowBytes, most: number): ArrowBytes {
  if (rows instanceof Blob) {
    if (rows.size > most) throw tooLarge(most);
    return rows;
  }
  return boundedPieces(rows as AsyncIterable<Uint8Array>, most);
}

async function* boundedPieces(pieces: AsyncIterable<Uint8Array>, most: number): AsyncIterable<Uint8Array> {
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.byteLength;
    if (bytes > most) throw tooLarge(most);
    yield piece;
  }
}

function tooLarge(most: number): LanceError {
  return new LanceError(
    "PayloadTooLarge",
    `the rows have more than ${formatBytes(most)}, which the gateway takes in an upload: split the file, or raise --max-upload-size`,
  );
}

/** Returns the schema of a table; undefined for one without rows so far, which gets its columns with them. */
export async function schemaOfTable(
  { namespace }: Connection,
  id: readonly string[],
  signal: AbortSignal,
): Promise<Schema | undefined> {
  try {
    return (await namespace.queryTable({ id, filter: "false", k: 1 }, { signal }).toTable()).schema;
  } catch (thrown) {
    if (thrown instanceof LanceError && thrown.is("TableNotFound")) return undefined;
    throw thrown;
  }
}

function taskOf({ file, choices, schema, isForTable }: Source): Omit<ConversionTask, "step"> {
  const kind = kindOfName(file.name);
  if (kind === undefined)
    throw new LanceError(
      "InvalidInput",
      `${file.name} is neither Arrow nor Parquet, CSV or JSON lines by its name`,
    );
  const bytes = schema && tableToIPC(new Table(schema), "stream");
  return { file, kind, choices, schema: bytes, isForTable };
}

/** Returns the rows of a file as an Arrow IPC stream; a worker converts those that are in another format. */
function convertedRows(task: ConversionTask, onPart: (part: number) => void): ArrowBytes {
  if (task.kind === "arrow") return task.file;
  return readFromWorker(
    WORKER,
    task,
    (news: ConversionNews) => news.kind === "progress" && onPart(news.part),
  );
}
