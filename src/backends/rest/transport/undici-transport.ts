import type { LookupFunction } from "node:net";
import { buildConnector, Pool } from "../../../runtime/internals/undici.ts";
import {
  type FollowedHosts,
  followHosts,
  type HostAddress,
  isName,
} from "../../resilience/followed-hosts.ts";
import { Gate } from "../../resilience/gate.ts";
import { Receiver } from "../bodies/receiver.ts";
import type { HttpTransportOptions, RestBackendOptions } from "../options.ts";
import { PlainConnections } from "../plain/connections.ts";
import {
  UpstreamFailure,
  type UpstreamRequest,
  type UpstreamResponse,
  type UpstreamTransport,
} from "./transport.ts";

/** A pool of connections. */
export interface HttpTransport extends UpstreamTransport {
  /** Closes the pool after its requests have ended. */
  drain(): Promise<void>;
}

/** Connections in addition to those of calls, for probes. */
const PROBES = 1;

/** undici's value for no limit on the pauses of an answer. */
const UNLIMITED = 0;

/**
 * Creates a transport with a pool of connections to an origin, over HTTP/1.1.
 *
 * @param lookup finds the addresses of the host. Default: the system's resolver, for every new connection.
 * @throws Error for an address that is not an HTTP URL, or has a query, a fragment or credentials.
 */
export function createHttpTransport(options: HttpTransportOptions, lookup?: LookupFunction): HttpTransport {
  const { origin, base } = parseBase(options.uri);
  const {
    maxCalls = 64,
    maxWaiting = 1_000,
    keepAliveMs = 4_000,
    maxAnswerBytes = 64 * 1024 ** 2,
    tls,
  } = options;
  const { connectionAgeMs = 300_000 } = options;
  const {
    connectMs = 5_000,
    firstByteMs = 120_000,
    idleMs = 60_000,
    totalMs = UNLIMITED,
  } = options.timeLimits ?? {};
  const connecting = {
    allowH2: false,
    timeout: connectMs,
    noDelay: true,
    ...(lookup !== undefined && { lookup }),
    ...(tls?.ca !== undefined && { ca: tls.ca }),
    ...(tls?.cert !== undefined && { cert: tls.cert }),
    ...(tls?.key !== undefined && { key: tls.key }),
    ...(tls?.serverName !== undefined && { servername: tls.serverName }),
  };
  // Shared by all successive pools: it keeps the sessions of TLS.
  const connect = buildConnector(connecting);
  const settings = {
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    headersTimeout: firstByteMs,
    bodyTimeout: idleMs,
  };
  const connections = maxCalls + PROBES;
  // Cheaper than undici's own age limit, which checks the clock of each connection in each request.
  const pool = createRenewedPool(
    () => new Pool(origin, { ...settings, connections, connect }),
    connectionAgeMs,
  );
  const times = { firstByteMs, idleMs, keepAliveMs, ageMs: connectionAgeMs };
  const plain = origin.startsWith("http:")
    ? new PlainConnections({ origin, base, connecting, settings, times, maxConnections: connections })
    : undefined;

  const collectMs = firstByteMs === UNLIMITED || idleMs === UNLIMITED ? UNLIMITED : firstByteMs + idleMs;
  const gate = new Gate({ places: maxCalls, maxWaiting });
  const leave = () => gate.leave();
  const nothing = () => {};

  function dispatch(request: UpstreamRequest, leftMs: number | undefined): Promise<UpstreamResponse> {
    const { method, target, headers, body, isProbe } = request;
    return new Promise((resolve, reject) => {
      const onOver = isProbe ? nothing : leave;
      const receiver = new Receiver(request, {
        maxAnswerBytes,
        leftMs,
        collectMs,
        onOver,
        resolve,
        reject,
      });
      const options = {
        method,
        path: base + target,
        headers: headers as string[],
        body: (body ?? null) as never,
      };
      if (plain?.send(request, options, receiver) !== true) pool.current.dispatch(options, receiver);
    });
  }

  return {
    base: origin + base,
    send(request) {
      const { signal, elapsedMs, isProbe, call } = request;
      if (signal.aborted) return Promise.reject(signal.reason);
      const leftMs = totalMs === UNLIMITED ? undefined : Math.max(1, totalMs - elapsedMs);
      const waiting = isProbe ? undefined : gate.enter(signal, leftMs, call);
      if (waiting === undefined) return dispatch(request, leftMs);
      const startedAt = Date.now();
      return waiting.then(() => dispatch(request, leftMs && leftMs - (Date.now() - startedAt)));
    },
    close() {
      plain?.destroy();
      return pool.destroy();
    },
    async drain() {
      await Promise.all([plain?.close(), pool.close()]);
    },
  };
}

/** Splits the address of an upstream into its origin and the prefix of all paths. */
export function parseBase(uri: string): { origin: string; base: string } {
  const url = URL.parse(uri);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new Error(`${JSON.stringify(uri)} is no address of a REST API, such as http://127.0.0.1:2333`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new Error("the address of a REST API has no credentials, no query and no fragment");
  }
  // Paths contain their own /v1.
  return { origin: url.origin, base: url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "") };
}

/** A pool of connections that is replaced from time to time, so that connections do not get old. */
export interface RenewedPool {
  readonly current: Pool;
  /** Ends all requests. */
  destroy(): Promise<void>;
  /** Waits for the running requests. */
  close(): Promise<void>;
}

/**
 * Creates the pool. A replaced pool finishes its requests.
 *
 * @param ageMs how long a pool is used, in milliseconds; 0 for no limit
 */
export function createRenewedPool(open: () => Pool, ageMs: number): RenewedPool {
  const former = new Set<Pool>();
  let current = open();
  const timer = ageMs === 0 ? undefined : setInterval(renew, ageMs).unref();

  function renew(): void {
    const old = current;
    current = open();
    former.add(old);
    const ended = () => former.delete(old);
    // It rejects if the pool is destroyed before its requests have ended.
    old.close().then(ended, ended);
  }

  return {
    get current() {
      return current;
    },
    async destroy() {
      clearInterval(timer);
      await Promise.all([current, ...former].map((pool) => pool.destroy()));
    },
    close() {
      clearInterval(timer);
      return current.close();
    },
  };
}

/**
 * Creates the pools of connections to an upstream: one for each server of each configured address.
 *
 * @throws Error for an address that is not an HTTP URL, or has a query, a fragment or credentials.
 */
export function createPools(options: RestBackendOptions): FollowedHosts<HttpTransport> {
  const uris = [...new Set([options.uri].flat())];
  if (uris.length === 0) throw new Error("an upstream needs an address");

  /** An unreachable server may have moved. */
  function watched(transport: HttpTransport): HttpTransport {
    return {
      ...transport,
      async send(request) {
        try {
          return await transport.send(request);
        } catch (error) {
          if (error instanceof UpstreamFailure && error.kind === "connect") pools.onUnreached();
          throw error;
        }
      },
    };
  }

  const pools = followHosts<HttpTransport>({
    places: uris.map((uri) => {
      const { host: name, hostname } = URL.parse(uri) ?? { host: uri, hostname: "" };
      return { address: uri, name, host: isName(hostname) ? hostname : undefined };
    }),
    open({ address: uri }, addresses) {
      if (addresses === undefined) return createHttpTransport({ ...options, uri });
      return watched(createHttpTransport({ ...options, uri }, fixedLookup(addresses)));
    },
    drain: (transport) => transport.drain(),
    close: (transport) => transport.close(),
    resolveHost: options.resolveHost,
  });
  return pools;
}

/** Returns a lookup that always finds the given addresses. */
function fixedLookup(addresses: readonly HostAddress[]): LookupFunction {
  return (_host, options, done) => {
    const [first] = addresses;
    if (first === undefined) done(new Error("no address"), "");
    else if (options.all) done(null, [...addresses]);
    else done(null, first.address, first.family);
  };
}
