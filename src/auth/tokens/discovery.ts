import { Agent, fetch, type Response } from "undici";
import { isJsonObject } from "../../runtime/text.ts";

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
