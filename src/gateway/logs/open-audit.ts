import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { createTrail, type FileTrail } from "../../observability/log/lines/trail.ts";
import type { AuditTrail } from "../../pipeline/records/audit.ts";
import { openLines, STANDARD_OUTPUT } from "./open-lines.ts";

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
