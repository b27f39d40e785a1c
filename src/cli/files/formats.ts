import { extname } from "node:path";
import { UsageError } from "../../config/option-spec.ts";

/** Formats of files that commands read and write. */
export const FILE_FORMATS = ["arrow", "arrows", "parquet"] as const;

/** `arrow`: an Arrow IPC file, which is also Feather version 2. `arrows`: an Arrow IPC stream. */
export type FileFormat = (typeof FILE_FORMATS)[number];

const BY_ENDING: Readonly<Record<string, FileFormat>> = {
  ".arrow": "arrow",
  ".feather": "arrow",
  ".ipc": "arrow",
  ".arrows": "arrows",
  ".parquet": "parquet",
  ".pq": "parquet",
};

/** Returns the format for the extension of a file's name. */
export function formatOfName(file: string): FileFormat {
  const format = BY_ENDING[extname(file).toLowerCase()];
  if (format !== undefined) return format;
  const endings = Object.keys(BY_ENDING).join(", ");
  throw new UsageError(`the name of ${file} has none of the endings ${endings}; --format says what it is`);
}
