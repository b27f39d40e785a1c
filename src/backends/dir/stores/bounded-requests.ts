import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import { within } from "../../../runtime/promises.ts";
import { lateError, MAX_ANSWER_BYTES, tooLong } from "./time-limits.ts";

/** Bounds of the requests that are made in a context. */
export interface Bounds {
  /** Name of the service. The library's requests for tokens have others. Default: the bounds are those of all requests. */
  readonly host?: string;
  /** Returns the signal that ends a request. */
  readonly signalOf: () => AbortSignal;
  /** Whether an answer of success is an object, whose reader bounds it. */
  readonly isObject: boolean;
  /** Learns of an answer that is too large, whose request ends. */
  readonly onTooLong: () => void;
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
    if (own !== undefined && (own.host === undefined || nameOf(own.host) === nameOf(request.host)))
      bind(request, own);
  });
}

/** Returns the name of a host without the brackets that an IPv6 address has in a URL; not every library keeps them. */
function nameOf(host: string): string {
  return host.replaceAll(/[[\]]/g, "");
}

function bind(request: ClientRequest, { signalOf, isObject, onTooLong }: Bounds): void {
  const signal = signalOf();
  const end = () => void request.destroy();
  if (signal.aborted) {
    end();
    return;
  }
  signal.addEventListener("abort", end, { once: true });
  request.once("close", () => signal.removeEventListener("abort", end));
  request.once("response", (answer: IncomingMessage) => {
    if (isRedirect(answer)) answer.statusCode = NOT_FROM_SERVICE;
    if (isObject && (answer.statusCode ?? 0) < 300) return;
    if (isPage(answer)) answer.statusCode = NOT_FROM_SERVICE;
    limitBytes(answer, () => {
      onTooLong();
      end();
    });
  });
}

/**
 * Ends an answer that is too large. It counts on the connection, from which node reads in any case: a listener of the answer would make its
 * bytes flow, and a library that begins to read a moment later would miss them.
 */
function limitBytes(answer: IncomingMessage, end: () => void): void {
  const { socket } = answer;
  let bytes = 0;
  const count = (piece: Buffer) => {
    bytes += piece.byteLength;
    if (bytes > MAX_ANSWER_BYTES) end();
  };
  socket.on("data", count);
  answer.once("close", () => socket.off("data", count));
}

/** Status for an answer that does not come from the service. No library repeats it. */
const NOT_FROM_SERVICE = 501;

/**
 * Whether an answer is a page for people, with which a proxy answers while the service is away. If it is a success, Google's
 * library takes it for a listing without objects and for the success of a write. Answers of the services have headers of their own.
 */
function isPage({ headers, statusCode = 0 }: IncomingMessage): boolean {
  const isOwn = Object.keys(headers).some((name) => /^x-(?:goog|ms)-/.test(name));
  return statusCode < 300 && !isOwn && /^text\/html\b/i.test(headers["content-type"] ?? "");
}

/**
 * Whether an answer is a redirect. The library of Google would read from any host that it names, and send it the form with the gateway's
 * own token.
 */
function isRedirect({ headers, statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 300 && statusCode < 400 && headers.location !== undefined;
}

/** Makes requests of a vendor's library in a context with bounds. */
export function inBounds<T>(own: Bounds, make: () => T): T {
  watch();
  return bounds.run(own, make);
}

/** How {@link bounded} makes requests. */
interface BoundedOptions {
  readonly host: string;
  /** In milliseconds. */
  readonly limit: number;
  /** Default: only the limit ends the requests. */
  readonly signal?: AbortSignal | undefined;
  /** Default: false. */
  readonly isObject?: boolean;
}

/** Makes requests to a service for a single call. They end with the call, which a limit, a signal or a large answer ends. */
export async function bounded<T>(
  { host, limit, signal, isObject = false }: BoundedOptions,
  make: () => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const end = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    // The library would repeat the request.
    const onTooLong = () => reject(tooLong());
    const request = inBounds({ host, signalOf: () => end.signal, isObject, onTooLong }, make);
    return await within(limit, Promise.race([request, ended]), lateError);
  } catch (error) {
    end.abort();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/**
 * Makes requests that may serve other calls as well, because libraries share their requests for tokens. Each request has the
 * limit for itself, in milliseconds, and goes on if the call that began it fails.
 */
export function boundedForAll<T>(limit: number, make: () => Promise<T>): Promise<T> {
  const own = { signalOf: () => AbortSignal.timeout(limit), isObject: false, onTooLong() {} };
  // The call's time begins before that of its first request, so that its error tells what happened.
  const request = Promise.resolve().then(() => inBounds(own, make));
  return within(limit, request, lateError);
}
