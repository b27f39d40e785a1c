import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { within } from "../../../runtime/within.ts";
import { MAX_ANSWER_BYTES } from "./paced-body.ts";
import { lateError } from "./time-limits.ts";

/** Bounds of the requests that are made in a context. */
interface Bounds {
  /** Name of the service; the library's requests for tokens serve other calls as well. Undefined for all services. */
  readonly host: string | undefined;
  readonly signal: AbortSignal;
  /** Whether an answer of success is an object, whose reader bounds it. */
  readonly isObject: boolean;
}

const bounds = new AsyncLocalStorage<Bounds>();

let isWatching = false;

/**
 * Makes the requests of the vendors' libraries end with their bounds. Google's takes neither a signal nor a limit, and
 * Azure's tells its limits only to the service; both read answers of any size.
 */
function watch(): void {
  if (isWatching) return;
  isWatching = true;
  subscribe("http.client.request.created", (message) => {
    const own = bounds.getStore();
    const { request } = message as { readonly request: ClientRequest };
    if (own !== undefined && (own.host ?? request.host) === request.host) bind(request, own);
  });
}

function bind(request: ClientRequest, { signal, isObject }: Bounds): void {
  const end = () => void request.destroy();
  if (signal.aborted) {
    end();
    return;
  }
  signal.addEventListener("abort", end, { once: true });
  request.once("close", () => signal.removeEventListener("abort", end));
  request.once("response", (answer: IncomingMessage) => {
    withoutRedirect(answer);
    if (isObject && (answer.statusCode ?? 0) < 300) return;
    limitBytes(answer, end);
  });
}

/**
 * Ends an answer that is too large. It counts where node passes the bytes on: a listener would make them flow, and a library
 * that begins to read a moment later would miss them.
 */
function limitBytes(answer: IncomingMessage, end: () => void): void {
  let bytes = 0;
  answer.push = (chunk: Buffer | null, ...rest) => {
    bytes += chunk?.byteLength ?? 0;
    if (bytes > MAX_ANSWER_BYTES) end();
    return Readable.prototype.push.call(answer, chunk, ...rest);
  };
}

/**
 * Hides the address of a redirect before the library reads it. The library of Google would read from any host that it
 * names, and send it the form with the gateway's own token. The header is renamed, because Node counts on the number of
 * headers when it reads them later.
 */
function withoutRedirect({ statusCode = 0, rawHeaders }: IncomingMessage): void {
  if (statusCode < 300 || statusCode >= 400) return;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (/^location$/i.test(rawHeaders[at] ?? "")) rawHeaders[at] = "x-location";
}

/** Makes requests of a vendor's library, to the service at a host, in a context where a signal ends them. */
export function inBounds<T>(
  host: string | undefined,
  signal: AbortSignal,
  isObject: boolean,
  make: () => T,
): T {
  watch();
  return bounds.run({ host, signal, isObject }, make);
}

/** Makes requests as {@link inBounds} does, and ends those that take longer than a limit, in milliseconds, or a signal. */
export async function bounded<T>(
  host: string | undefined,
  limit: number,
  make: () => Promise<T>,
  signal?: AbortSignal,
  isObject = false,
): Promise<T> {
  signal?.throwIfAborted();
  const end = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const request = inBounds(host, end.signal, isObject, make);
    return await within(limit, Promise.race([request, ended]), lateError);
  } catch (error) {
    end.abort();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
