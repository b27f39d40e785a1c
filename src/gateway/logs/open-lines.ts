import { write } from "node:fs";
import { promisify } from "node:util";
import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import {
  createLineWriter,
  type LineTarget,
  type LineWriter,
} from "../../observability/log/lines/line-writer.ts";
import { openRotatingFile } from "../../observability/log/lines/rotating-file.ts";

/** Value of an option for standard output in place of a file. */
export const STANDARD_OUTPUT = "-";

/** Options of {@link openLines}. */
export interface LinesOptions {
  /** The option that names the file. */
  readonly flag: string;
  readonly path: string;
  /** Name of the log in messages, such as `audit log`. */
  readonly name: string;
  /** Size at which the file is moved away, in bytes. Default: it never is. */
  readonly maxBytes?: number | undefined;
  /** Number of files that are kept beside the newest. Default: 0. */
  readonly keep?: number;
  readonly log: Logger;
}

/**
 * Opens a file, or standard output, for lines.
 *
 * @throws UsageError for a file that cannot be opened.
 */
export async function openLines({ flag, path, keep = 0, ...options }: LinesOptions): Promise<LineWriter> {
  if (path === STANDARD_OUTPUT) return createLineWriter(standardOutput);
  const file = await openRotatingFile({ path, keep, ...options }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${flag} ${path} cannot be opened: ${error.code ?? error.message}`, {
      cause: error,
    });
  });
  return createLineWriter(file);
}

const writeTo = promisify(write);

const standardOutput: LineTarget = {
  async prepare() {},
  write: async (bytes, offset) => (await writeTo(1, bytes, offset)).bytesWritten,
  async close() {},
};
