import type { Logger } from "pino";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import { createTrail, type FileTrail } from "../log/lines/trail.ts";
import { openLines, STANDARD_OUTPUT } from "./open-lines.ts";

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
  const name = "audit log";
  const writer = await openLines({ flag: "--audit-log", path, name, maxBytes, keep, log });
  return createTrail({ name, writer, required, log, onLost });
}
