import type { Logger } from "pino";
import type { ChangeEvent } from "../namespace/change-event.ts";
import { createLineWriter } from "../observability/log/lines/line-writer.ts";
import { openRotatingFile } from "../observability/log/lines/rotating-file.ts";
import { createTrail } from "../observability/log/lines/trail.ts";

/** An event that is not delivered. */
export interface DeadLetter {
  /** Address of the receiver, without its query. */
  readonly webhook: string;
  readonly reason: string;
  readonly attempts: number;
  readonly event: ChangeEvent;
}

/** The file of events that were not delivered, a line of JSON each. */
export interface DeadLetters {
  /**
   * Appends a line.
   *
   * @throws LanceError if the system does not take it, which the log says.
   */
  bury(letter: DeadLetter): Promise<void>;
  close(): Promise<void>;
}

const NAME = "file of dead letters";

/** Size at which the file is renamed, in bytes, and the number of renamed files that are kept. */
const MAX_BYTES = 16 * 1024 ** 2;
const KEEP = 10;

/** Opens the file for appending. @throws Error of node:fs */
export async function openDeadLetters(path: string, log: Logger): Promise<DeadLetters> {
  const target = await openRotatingFile({ name: NAME, path, maxBytes: MAX_BYTES, keep: KEEP, log });
  const writer = createLineWriter(target);
  const trail = createTrail({ name: NAME, writer, required: true, log, onLost() {} });
  return {
    bury: (letter) => trail.write(JSON.stringify({ time: new Date().toISOString(), ...letter })),
    close: () => trail.close(),
  };
}
