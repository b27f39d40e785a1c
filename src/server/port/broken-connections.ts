import type { Logger } from "pino";
import type { ErrorName } from "../../namespace/errors.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";

/** Node's codes for requests that it cannot read, and the error rows nearest to its answers. */
const NO_HTTP: readonly (readonly [RegExp, ErrorName])[] = [
  [/^HPE_(?:HEADER|CHUNK_EXTENSIONS)_OVERFLOW$/, "PayloadTooLarge"],
  [/^ERR_HTTP_REQUEST_TIMEOUT$/, "DeadlineExceeded"],
  [/^(?:HPE_|ERR_HTTP2_|ERR_SSL_)/, "InvalidInput"],
];

/** Takes note of the error of a connection; the text says what has failed. */
export type NoteBroken = (error: NodeJS.ErrnoException, text: string, peer?: string) => void;

/** Creates the function that notes broken connections: a client that sends bytes other than HTTP is refused, one that has disconnected is not. */
export function createNoteBroken(log: Logger, refused: NoteRefusal | undefined): NoteBroken {
  const told = new WeakSet<Error>();
  return (error, text, peer) => {
    const { code: fault = "" } = error;
    const code = NO_HTTP.find(([pattern]) => pattern.test(fault))?.[1];
    if (code === undefined) log.debug({ err: error }, text);
    // A session and its socket fail with the same error.
    else if (!told.has(error)) refused?.({ protocol: "http", code, fault, peer });
    told.add(error);
  };
}
