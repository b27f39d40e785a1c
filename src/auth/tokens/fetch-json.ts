import { Agent, fetch, type Response } from "undici";

/** Longest time for a whole answer, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** Largest answer after decompression, in bytes: a hundred keys with their certificates. */
const MAX_BYTES = 512 * 1024;

/** Options of {@link fetchJson}. */
export interface FetchOptions {
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
export async function fetchJson(url: string, options: FetchOptions = {}): Promise<unknown> {
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
