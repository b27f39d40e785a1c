import { extname } from "node:path";
import { UsageError } from "../../config/option-spec.ts";

/** Formats of files that commands read and write. */
export const FILE_FORMATS = ["arrow", "arrows", "parquet", "csv", "tsv", "jsonl"] as const;

/**
 * `arrow`: an Arrow IPC file, which is also Feather version 2. `arrows`: an Arrow IPC stream. `csv`: lines of values, the
 * first with names. `tsv`: the same with tabs between the values. `jsonl`: lines with an object of JSON each.
 */
export type FileFormat = (typeof FILE_FORMATS)[number];

/** Formats that are texts, whose values take their types from the table or from all of them. */
const TEXT_FORMATS = ["csv", "tsv", "jsonl"] as const satisfies readonly FileFormat[];
type TextFormat = (typeof TEXT_FORMATS)[number];

/** Whether a format is a text. */
export function isTextFormat(format: FileFormat): format is TextFormat {
  return (TEXT_FORMATS as readonly FileFormat[]).includes(format);
}

/** Name of standard input and standard output. */
export const STANDARD = "-";

/** Text between the values of `tsv`. */
export const TAB = "\t";

const BY_ENDING: Readonly<Record<string, FileFormat>> = {
  ".arrow": "arrow",
  ".feather": "arrow",
  ".ipc": "arrow",
  ".arrows": "arrows",
  ".parquet": "parquet",
  ".pq": "parquet",
  ".csv": "csv",
  ".tsv": "tsv",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
};

/** Returns the format for the extension of a file's name. */
export function formatOfName(file: string): FileFormat {
  if (file === STANDARD) throw new UsageError("- has no name that says its format; --format says what it is");
  const format = BY_ENDING[extname(file).toLowerCase()];
  if (format !== undefined) return format;
  const endings = Object.keys(BY_ENDING).join(", ");
  throw new UsageError(`the name of ${file} has none of the endings ${endings}; --format says what it is`);
}
