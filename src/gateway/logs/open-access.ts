import type { Logger } from "pino";
import { createTrail } from "../../observability/log/lines/trail.ts";
import type { NoteAccess } from "../../pipeline/records/access-entry.ts";
import { accessLine } from "../../pipeline/records/access-line.ts";
import type { MaskPath } from "../../pipeline/records/refusals.ts";
import { openLines } from "./open-lines.ts";

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
