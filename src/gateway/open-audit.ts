import { write } from "node:fs";
import { promisify } from "node:util";
import type { Logger } from "pino";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import { createAuditTrail, type FileTrail } from "../log/audit/audit-trail.ts";
import { createLineWriter, type LineTarget } from "../log/audit/line-writer.ts";
import { openRotatingFile } from "../log/audit/rotating-file.ts";

/** Value of `--audit-log` for standard output. */
export const STANDARD_OUTPUT = "-";

type AuditOptions = Pick<ServeOptions, "auditLog" | "auditRequired" | "auditMaxBytes" | "auditFiles">;

/**
 * Opens the audit log that the options describe; undefined without one.
 *
 * @param onLost counts lines that could not be written
 * @throws UsageError for options that contradict each other, and for a file that cannot be opened.
 */
export async function openAudit(
  options: AuditOptions,
  log: Logger,
  onLost: (lines: number) => void,
): Promise<FileTrail | undefined> {
  const { auditLog: path, auditRequired: required, auditMaxBytes: maxBytes, auditFiles: keep } = options;
  if (path === undefined) {
    if (required) throw new UsageError("--audit-required needs --audit-log beside it");
    if (maxBytes !== undefined) throw new UsageError("--audit-max-bytes needs --audit-log beside it");
    return undefined;
  }
  if (path === STANDARD_OUTPUT && maxBytes !== undefined) {
    throw new UsageError("--audit-max-bytes has no meaning for standard output");
  }
  const target = path === STANDARD_OUTPUT ? standardOutput : await openFile(path, maxBytes, keep, log);
  return createAuditTrail({ writer: createLineWriter(target), required, log, onLost });
}

async function openFile(
  path: string,
  maxBytes: number | undefined,
  keep: number,
  log: Logger,
): Promise<LineTarget> {
  return openRotatingFile({ path, maxBytes, keep, log }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--audit-log ${path} cannot be opened: ${error.code ?? error.message}`, {
      cause: error,
    });
  });
}

const writeTo = promisify(write);

const standardOutput: LineTarget = {
  async prepare() {},
  write: async (bytes, offset) => (await writeTo(1, bytes, offset)).bytesWritten,
  async close() {},
};
