import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, rename, rm, stat } from "node:fs/promises";
import { toIpcFile, toIpcStream } from "../../../arrow/ipc/file.ts";
import { toCsv } from "../../../arrow/rows/csv-rows.ts";
import { toJsonRows } from "../../../arrow/rows/json-rows.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { type FileFormat, formatOfName, isTextFormat, STANDARD, TAB } from "../../files/formats.ts";
import { createProgress } from "../../terminal/progress.ts";
import { catalogCommand } from "../catalog-command.ts";
import { sizeText } from "../text-table.ts";
import { FORMAT_OPTION } from "./import.ts";
import { ROW_OPTIONS, STATE_OPTIONS } from "./read-options.ts";

/** Option of commands that write a file. */
export const FORCE_OPTION = {
  flag: "force",
  help: "Replace an existing file.",
  fallback: "false",
  parse: parseSwitch,
} as const satisfies OptionSpec;

const OPTIONS = {
  ...ROW_OPTIONS,
  ...STATE_OPTIONS,
  format: FORMAT_OPTION,
  force: FORCE_OPTION,
} as const satisfies OptionTable;

/** `lance-gateway export`: writes rows of a table to a file, all or none, or to standard output. */
export const exportRows = catalogCommand({
  operands: "<TABLE> <FILE>",
  access: "read",
  options: OPTIONS,
  async run({ namespace, operands: [path = "", file = ""], options, signal, print, answer }) {
    const id = parsePath(path);
    const { filter, columns, version, branch, force } = options;
    const format = options.format ?? formatOfName(file);
    const result = namespace.queryTable({ id, filter, columns, version, branch }, { signal });
    if (file === STANDARD) {
      if (process.stdout.isTTY && !isTextFormat(format))
        throw new UsageError(`a terminal does not show ${format}; csv, tsv and jsonl are texts`);
      for await (const piece of ENCODERS[format](result.bytes())) await print(piece);
      return;
    }
    const written = await saveRows(result.bytes(), { file, format, force, label: pathText(id) });
    await answer(
      { path: pathText(id), file, bytes: written },
      () => `exported ${pathText(id)} into ${file}, ${sizeText(written)}\n`,
    );
  },
});

/** A file for rows. */
interface Saving {
  readonly file: string;
  /** Default: by the name of the file. */
  readonly format?: FileFormat;
  /** Whether the file may exist. */
  readonly force: boolean;
  /** Subject of the progress bar. */
  readonly label: string;
}

/**
 * Writes rows to a file, all or none, and returns its size in bytes.
 *
 * @throws Error with a single line, if the file exists or cannot be written, and every error of the rows
 */
export async function saveRows(
  rows: AsyncIterable<Uint8Array>,
  { file, format = formatOfName(file), force, label }: Saving,
): Promise<number> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() === false) throw new Error(`${file} is no file; - writes to standard output`);
  if (found !== undefined && !force) throw fileExists(file);
  const progress = createProgress({ label, total: undefined, unit: "bytes" });
  let written = 0;
  try {
    await writeRows({ file, format, force }, rows, (bytes) => {
      written += bytes;
      progress.advance(bytes);
    });
  } finally {
    progress.end();
  }
  return written;
}

/** Converts an answer, an Arrow IPC stream or file, to a file of a format. */
const ENCODERS: Readonly<
  Record<FileFormat, (answer: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>>
> = {
  arrow: toIpcFile,
  arrows: toIpcStream,
  async *parquet(answer) {
    const { toParquet } = await import("../../files/parquet.ts");
    yield* toParquet(toIpcStream(answer));
  },
  csv: toCsv,
  tsv: (answer) => toCsv(answer, TAB),
  jsonl: (answer) => toJsonRows(answer, "lines"),
};

/**
 * Writes an answer to a file, which appears when it is complete. Until then its rows are in a temporary file beside
 * it, which is removed if the answer fails.
 *
 * @param advanced called with the number of bytes that were written.
 * @throws Error with a single line, if the file cannot be written or has appeared meanwhile, and every error of the answer.
 */
async function writeRows(
  { file, format, force }: Required<Omit<Saving, "label">>,
  answer: AsyncIterable<Uint8Array>,
  advanced: (bytes: number) => void,
): Promise<void> {
  const part = `${file}.${randomBytes(4).toString("hex")}.part`;
  const writing = <T>(work: Promise<T>) => work.catch((cause) => refuse(file, cause));
  const handle = await writing(open(part, "wx"));
  try {
    try {
      for await (const piece of ENCODERS[format](answer)) {
        await writing(writeAll(handle, piece));
        advanced(piece.byteLength);
      }
      await writing(handle.sync());
    } finally {
      await handle.close();
    }
    await writing(force ? rename(part, file) : placeNew(part, file));
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** Gives a temporary file its name. @throws NodeJS.ErrnoException EEXIST if another file has it by now */
export async function placeNew(part: string, file: string, linkFile = link): Promise<void> {
  try {
    await linkFile(part, file);
    await rm(part);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!NO_LINKS.has(code)) throw error;
    // The empty file keeps the name until the rows replace it.
    await (await open(file, "wx")).close();
    await rename(part, file).catch(async (cause: unknown) => {
      await rm(file, { force: true });
      throw cause;
    });
  }
}

/** Errors of file systems without hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EXDEV"]);

function fileExists(file: string): Error {
  return new Error(`${file} exists; --force replaces it`);
}

/** @throws Error that names the file, which failures of writes to an open one do not */
function refuse(file: string, cause: NodeJS.ErrnoException): never {
  if (cause.code === "EEXIST") throw fileExists(file);
  throw new Error(`${file} cannot be written: ${cause.message.split(",")[0]}`, { cause });
}

async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.byteLength; ) at += (await handle.write(piece, at)).bytesWritten;
}
