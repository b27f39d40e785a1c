import { Pool } from "undici";
import type { HttpTransportOptions } from "./options.ts";
import { Receiver } from "./receiver.ts";
import type { UpstreamTransport } from "./transport.ts";

/** How long undici gives the pieces of an answer when there is no limit: no time at all stands for that. */
const UNLIMITED = 0;

/**
 * Creates a transport with a pool of connections to one origin, over HTTP/1.1.
 *
 * @throws Error for an address that is no URL of HTTP, or has a query, a fragment or credentials.
 */
export function createHttpTransport(options: HttpTransportOptions): UpstreamTransport {
  const { origin, base } = parseBase(options.uri);
  const { connections = 64, keepAliveMs = 30_000, maxAnswerBytes = 64 * 1024 ** 2, tls } = options;
  const {
    connectMs = 5_000,
    firstByteMs = 120_000,
    idleMs = 60_000,
    totalMs = UNLIMITED,
  } = options.timeLimits ?? {};
  const pool = new Pool(origin, {
    connections,
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    headersTimeout: firstByteMs,
    bodyTimeout: idleMs,
    connectTimeout: connectMs,
    connect: {
      noDelay: true,
      ...(tls?.ca !== undefined && { ca: tls.ca }),
      ...(tls?.cert !== undefined && { cert: tls.cert }),
      ...(tls?.key !== undefined && { key: tls.key }),
      ...(tls?.serverName !== undefined && { servername: tls.serverName }),
    },
  });

  return {
    send(request) {
      const { signal, method, target, headers, body } = request;
      if (signal.aborted) return Promise.reject(signal.reason);
      return new Promise((resolve, reject) => {
        const receiver = new Receiver(request, { maxAnswerBytes, totalMs, resolve, reject });
        pool.dispatch(
          { method, path: base + target, headers: headers as string[], body: (body ?? null) as never },
          receiver,
        );
      });
    },
    close: () => pool.destroy(),
  };
}

/** Splits the address of an upstream into its origin and the beginning of all paths. */
export function parseBase(uri: string): { origin: string; base: string } {
  const url = URL.parse(uri);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new Error(`${JSON.stringify(uri)} is no address of a REST API, such as http://127.0.0.1:2333`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new Error("the address of a REST API has no credentials, no query and no fragment");
  }
  // Paths bring their own /v1.
  return { origin: url.origin, base: url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "") };
}
