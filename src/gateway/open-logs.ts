import { write } from "node:fs";
import { promisify } from "node:util";
import type { Logger } from "pino";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import {
  createLineWriter,
  type LineTarget,
  type LineWriter,
  openRotatingFile,
} from "../observability/log/lines/line-writer.ts";
import { createTrail, type FileTrail } from "../observability/log/lines/trail.ts";
import type { NoteAccess } from "../pipeline/records/access-entry.ts";
import { accessLine } from "../pipeline/records/access-entry.ts";
import type { AuditTrail } from "../pipeline/records/audit.ts";
import type { MaskPath } from "../pipeline/records/refusals.ts";

/** Value of an option for standard output in place of a file. */
export const STANDARD_OUTPUT = "-";

/** Options of {@link openLines}. */
interface LinesOptions {
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
async function openLines({ flag, path, keep = 0, ...options }: LinesOptions): Promise<LineWriter> {
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

/** The access log of a gateway. */
export interface AccessLog {
  /** Creates the function that writes a line about each request. */
  noteBy(mask: MaskPath): NoteAccess;
  /** Writes what waits and closes the file. */
  close(): Promise<void>;
}

/** How long lines wait for others, so that they are written together, in milliseconds. */
const LINGER_MS = 20;

/**
 * Opens the access log in a file; undefined without one.
 *
 * @param onLost counts lines that could not be written
 * @throws UsageError for a file that cannot be opened.
 */
export async function openAccess(
  path: string | undefined,
  log: Logger,
  onLost: (lines: number) => void,
): Promise<AccessLog | undefined> {
  if (path === undefined) return undefined;
  const name = "access log";
  const writer = await openLines({ flag: "--access-log", path, name, log });
  const trail = createTrail({ name, writer, required: false, lingerMs: LINGER_MS, log, onLost });
  return {
    noteBy: (mask) => (entry) => trail.note(accessLine(entry, mask)),
    close: trail.close,
  };
}

/** An audit log in files, or on standard output. */
export interface AuditLog extends AuditTrail {
  /** Writes what waits and closes the files. */
  close(): Promise<void>;
}

type AuditOptions = Pick<ServeOptions, "auditLog" | "auditRequired" | "auditMaxBytes" | "auditFiles">;

/** Follows the name of the file with the lines about refused calls of unknown callers. */
const UNPROVEN_SUFFIX = ".unauthenticated";

/**
 * Opens the audit log that the options describe; undefined without one. If its size is bounded, the lines about refused calls of unknown
 * callers have a file of their own, because anyone could make the oldest lines go by such calls.
 *
 * @param onLost counts lines that could not be written
 * @throws UsageError for options that contradict each other, and for a file that cannot be opened.
 */
export async function openAudit(
  options: AuditOptions,
  log: Logger,
  onLost: (lines: number) => void,
): Promise<AuditLog | undefined> {
  const { auditLog: path, auditRequired: required, auditMaxBytes: maxBytes, auditFiles: keep } = options;
  if (path === undefined) {
    if (required) throw new UsageError("--audit-required requires --audit-log");
    if (maxBytes !== undefined) throw new UsageError("--audit-max-bytes requires --audit-log");
    return undefined;
  }
  if (path === STANDARD_OUTPUT && maxBytes !== undefined) {
    throw new UsageError("--audit-max-bytes has no meaning for standard output");
  }
  const name = "audit log";
  const open = async (path: string): Promise<FileTrail> => {
    const writer = await openLines({ flag: "--audit-log", path, name, maxBytes, keep, log });
    return createTrail({ name, writer, required, log, onLost });
  };
  const trail = await open(path);
  if (maxBytes === undefined) return trail;
  try {
    return splitTrail(trail, await open(`${path}${UNPROVEN_SUFFIX}`));
  } catch (error) {
    await trail.close();
    throw error;
  }
}

function splitTrail(proven: FileTrail, unproven: FileTrail): AuditLog {
  return {
    requireWritable: proven.requireWritable,
    write(line, isUnproven) {
      return (isUnproven && isWritable(proven) ? unproven : proven).write(line);
    },
    async close() {
      await Promise.all([proven.close(), unproven.close()]);
    },
  };
}

/** Whether calls are not refused for a trail; the line of a call that is refused for it has to try whether it can be written again. */
function isWritable(trail: FileTrail): boolean {
  try {
    trail.requireWritable();
    return true;
  } catch {
    return false;
  }
}
