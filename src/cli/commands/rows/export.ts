import { stat } from "node:fs/promises";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { type FileFormat, formatOfName, isTextFormat, STANDARD } from "../../files/formats.ts";
import { ENCODERS, writeRows } from "../../files/write.ts";
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
  if (found !== undefined && !force) throw new Error(`${file} exists; --force replaces it`);
  const progress = createProgress({ label, total: undefined, unit: "bytes" });
  let written = 0;
  try {
    await writeRows(file, format, rows, (bytes) => {
      written += bytes;
      progress.advance(bytes);
    });
  } finally {
    progress.end();
  }
  return written;
}
