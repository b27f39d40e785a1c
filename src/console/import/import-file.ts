import { type Schema, Table, tableFromIPC, tableToIPC } from "apache-arrow";
import type { ArrowBytes } from "../../client/rows/arrow-input.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Connection } from "../session/connection.ts";
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

/** Reads the first rows of a file; of a text all values are read, because they decide about its types. */
export async function lookAt(source: Source, signal: AbortSignal): Promise<Table> {
  const task: ConversionTask = { ...taskOf(source), step: "look" };
  const news = await runInWorker(WORKER, task, (each: ConversionNews) => each.kind === "seen", { signal });
  return tableFromIPC(news.rows);
}

/** Imports a file as a single upload: all of its rows are stored, or none. */
export async function importFile(connection: Connection, task: ImportTask): Promise<void> {
  const { id, mode, onProgress } = task;
  const onPart = (part: number) => onProgress({ step: "converting", part });
  const rows = convertedRows({ ...taskOf(task), step: "convert" }, onPart);
  const namespace = connection.uploading((part) =>
    onProgress({ step: part < 1 ? "sending" : "storing", part }),
  );
  if (mode === "append") await namespace.insertIntoTable({ id, mode: "append" }, rows);
  else await namespace.createTable({ id, mode }, rows);
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
