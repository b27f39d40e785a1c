import type { IncomingHttpHeaders } from "node:http";
import type { Call } from "../../namespace/call/call.ts";
import type { Refusal } from "./refusals.ts";

/** Facts about a request at its end, for the access log. */
export interface AccessEntry {
  /** Default: the bytes were not a request. */
  readonly method?: string | undefined;
  /** Path as it was sent, without the query. */
  readonly path?: string | undefined;
  /** Version of HTTP. */
  readonly http?: string | undefined;
  readonly headers?: IncomingHttpHeaders;
  /** Network address of the client. */
  readonly client?: string | undefined;
  readonly userAgent?: string | undefined;
  /** HTTP status of the answer. Default: none was sent. */
  readonly status?: number | undefined;
  /** Whether the answer was sent to its end. */
  readonly finished: boolean;
  /** The call that the request has become. */
  readonly call?: Call | undefined;
  /** Reason why it has not become one. */
  readonly refusal?: Refusal | undefined;
  /** Bytes of the body of the request. */
  readonly received: number;
  /** Bytes of the body of the answer. */
  readonly sent: number;
  readonly seconds: number;
}

/** Receives every request at its end; it must be fast. */
export type NoteAccess = (entry: AccessEntry) => void;
