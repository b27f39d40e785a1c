import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from "jose";
import type { Logger } from "pino";
import { Agent, fetch, type Response } from "undici";
import { LanceError } from "../../namespace/errors.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import { isJsonObject } from "../../runtime/text.ts";

/** Most keys of an issuer. */
const MAX_KEYS = 100;
/** Most calls that wait for keys. */
const MAX_WAITING = 1_000;

/** The public keys of an issuer, as they are at a time. */
export interface Keys {
  find(header: JWSHeaderParameters): Promise<CryptoKey>;
}

/** The public keys of an issuer, which change. */
export interface KeySet {
  /** The keys, another object after each change; undefined while they are unknown or too old. */
  current(): Keys | undefined;
  /**
   * Returns the key that the header of a token names. A name that is not known makes the set fetch the keys again, if it has not done
   * so just now.
   *
   * @throws LanceError ServiceUnavailable with `retry-after` while the keys cannot be fetched, and an error of `jose` for a key that
   *   the issuer does not have.
   */
  find(header: JWSHeaderParameters): Promise<CryptoKey>;
  /** Begins to fetch the keys. The log says whether it succeeds. */
  prepare(): void;
}

/** Options of {@link createKeySet}. */
export interface KeySetOptions {
  /** Name of the issuer, for the log and for errors. */
  readonly issuer: string;
  /** Fetches the issuer's key set. */
  fetch(): Promise<unknown>;
  readonly log: Logger;
  /** Age at which the keys are fetched again while the old ones serve, in milliseconds. Default: 5 minutes. */
  readonly refreshMs?: number | undefined;
  /** Age at which the keys serve no longer if the issuer cannot be reached, in milliseconds. Default: 1 hour. */
  readonly maxAgeMs?: number | undefined;
  /** Shortest time between fetches because of names that are not known, in milliseconds. Default: 30 s. */
  readonly cooldownMs?: number | undefined;
  /** Pause after a first failure, in milliseconds; it doubles up to a minute. Default: 1 s. */
  readonly pauseMs?: number | undefined;
}

const LONGEST_PAUSE_MS = 60_000;

interface Failure {
  /** Number of failures since the last success. */
  readonly count: number;
  /** Time of the next attempt. */
  readonly until: number;
  readonly cause: unknown;
}

/** Creates a set without keys; the first call that needs them fetches them. */
export function createKeySet(options: KeySetOptions): KeySet {
  const { issuer, log, refreshMs = 300_000, maxAgeMs = 3_600_000 } = options;
  const { cooldownMs = 30_000, pauseMs: firstPauseMs = 1_000 } = options;
  let keys: Keys | undefined;
  let text: string | undefined;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  /** Time of the last fetch because of a name that is not known. */
  let soughtAt = Number.NEGATIVE_INFINITY;
  let failure: Failure | undefined;
  let flight: Promise<void> | undefined;
  let waiting = 0;

  async function fetchKeys(): Promise<void> {
    try {
      const set = await options.fetch();
      checkKeySet(set);
      const fetched = JSON.stringify(set);
      // Verified tokens are kept for as long as the keys stay.
      if (fetched !== text) {
        keys = { find: createLocalJWKSet(set) };
        text = fetched;
        log.info({ issuer, keys: set.keys.length }, "the keys of the issuer were read");
      }
      fetchedAt = performance.now();
      failure = undefined;
    } catch (cause) {
      const before = failure?.count ?? 0;
      const until = performance.now() + backoffMs(before, firstPauseMs, LONGEST_PAUSE_MS);
      failure = { count: before + 1, until, cause };
      log.warn({ issuer, err: cause }, "the keys of the issuer cannot be read");
    }
  }

  /** Fetches the keys, once for all that wait; not at all for a while after a failure. */
  async function refresh(): Promise<void> {
    if (flight === undefined) {
      if (failure !== undefined && performance.now() < failure.until) throw unavailable(failure);
      flight = fetchKeys().finally(() => {
        flight = undefined;
      });
    }
    if (waiting >= MAX_WAITING) throw unavailable(failure);
    waiting += 1;
    await flight.finally(() => {
      waiting -= 1;
    });
    if (failure !== undefined) throw unavailable(failure);
  }

  function unavailable(known: Failure | undefined): LanceError {
    const ms = known === undefined ? 0 : known.until - performance.now();
    const headers = { "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) };
    const reason = "tokens cannot be checked now, because the keys of their issuer cannot be read";
    return new LanceError("ServiceUnavailable", reason, { cause: known?.cause, headers });
  }

  function current(): Keys | undefined {
    const age = performance.now() - fetchedAt;
    // The log has the reason of a failure.
    if (age >= refreshMs && age < maxAgeMs) refresh().catch(() => {});
    return age < maxAgeMs ? keys : undefined;
  }

  async function refreshForName(error: unknown): Promise<void> {
    if (flight === undefined) {
      if (performance.now() - soughtAt < cooldownMs) throw error;
      soughtAt = performance.now();
    }
    await refresh();
  }

  async function fetched(): Promise<Keys> {
    const known = current();
    if (known !== undefined) return known;
    await refresh();
    return keys as Keys;
  }

  return {
    current,
    // The log has the reason of a failure.
    prepare: () => void refresh().catch(() => {}),
    async find(header) {
      const known = await fetched();
      try {
        return await known.find(header);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        // Another call may have fetched the keys meanwhile.
        if (keys === known) await refreshForName(error);
        return (keys as Keys).find(header);
      }
    },
  };
}

function checkKeySet(set: unknown): asserts set is JSONWebKeySet {
  if (!isJsonObject(set) || !Array.isArray(set["keys"])) throw new Error("the answer is not a set of keys");
  if (set["keys"].length > MAX_KEYS) throw new Error(`the issuer has more than ${MAX_KEYS} keys`);
}

/** Options of {@link fetchIssuerKeys}. */
export interface IssuerAddress {
  /** Issuer, which is also the address of its discovery document. */
  readonly issuer: string;
  /** Address of the keys. Default: the one in the discovery document. */
  readonly jwksUri?: string | undefined;
  /** Returns the options of the requests; it is called for each set of keys, because files change. Default: none. */
  readonly settings?: (() => Promise<FetchOptions>) | undefined;
}

/**
 * Fetches the set of keys of an issuer, by its discovery document (OpenID Connect Discovery 1.0).
 *
 * @throws Error for a document of another issuer, or one that leads to an address without TLS.
 */
export async function fetchIssuerKeys({ issuer, jwksUri, settings }: IssuerAddress): Promise<unknown> {
  const options = await settings?.();
  return fetchJson(jwksUri ?? (await discover(issuer, options)), options);
}

async function discover(issuer: string, options: FetchOptions | undefined): Promise<string> {
  const document = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, options);
  if (!isJsonObject(document) || document["issuer"] !== issuer)
    throw new Error(`the discovery document at ${issuer} is that of another issuer`);
  const uri = document["jwks_uri"];
  const parsed = typeof uri === "string" ? URL.parse(uri) : null;
  if (parsed === null) throw new Error(`the discovery document at ${issuer} has no jwks_uri`);
  if (parsed.protocol !== "https:" && parsed.origin !== new URL(issuer).origin)
    throw new Error(`the keys of ${issuer} have an address without TLS`);
  return parsed.href;
}

/** Longest time for a whole answer, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** Largest answer after decompression, in bytes: a hundred keys with their certificates. */
const MAX_BYTES = 512 * 1024;

/** Options of {@link fetchJson}. */
interface FetchOptions {
  /** Certificates of authorities that may have signed the server's, in PEM. Default: those that Node trusts. */
  readonly ca?: string | undefined;
  /** Token of the gateway itself. Default: none. */
  readonly token?: string | undefined;
  /** Longest time for a whole answer, in milliseconds. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Fetches a JSON document, without following redirects.
 *
 * @throws Error for an answer that is not 200, late, larger than 512 KiB, or no JSON.
 */
async function fetchJson(url: string, options: FetchOptions = {}): Promise<unknown> {
  const { ca, token, timeoutMs = TIMEOUT_MS } = options;
  const dispatcher = new Agent({ connections: 1, ...(ca !== undefined && { connect: { ca } }) });
  try {
    const answer = await fetch(url, {
      dispatcher,
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: "application/json, application/jwk-set+json",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    });
    if (answer.status !== 200) throw new Error(`${url} answers ${answer.status}`);
    return JSON.parse(await textOf(answer, url));
  } finally {
    await dispatcher.destroy();
  }
}

async function textOf(answer: Response, url: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of answer.body ?? []) {
    size += piece.byteLength;
    if (size > MAX_BYTES) throw new Error(`the answer of ${url} is larger than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
