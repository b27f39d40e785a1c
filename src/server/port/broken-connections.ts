import type { Logger } from "pino";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { errorOfUnreadable } from "../connections/unreadable-requests.ts";

/** Takes note of the error of a connection; the text says what has failed. */
export type NoteBroken = (error: NodeJS.ErrnoException, text: string, peer?: string) => void;

/** Creates the function that notes broken connections: a client that sends bytes other than HTTP is refused, one that has disconnected is not. */
export function createNoteBroken(log: Logger, refused: NoteRefusal | undefined): NoteBroken {
  const told = new WeakSet<Error>();
  return (error, text, peer) => {
    const { code: fault = "" } = error;
    const code = errorOfUnreadable(fault);
    if (code === undefined) log.debug({ err: error }, text);
    // A session and its socket fail with the same error.
    else if (!told.has(error)) refused?.({ protocol: "http", code, fault, peer });
    told.add(error);
  };
}
