import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The part of an object that a request asks for, as it says it. */
export type AskedRange =
  | { readonly start: number; readonly last: number | undefined }
  /** The last bytes. */
  | { readonly suffix: number };

/** Parses a Range header; undefined for what is not a single range of bytes. */
export function parseRange(text: string): AskedRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(text) ?? [];
  if (first === "") return last === "" || Number(last) === 0 ? undefined : { suffix: Number(last) };
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return { start: Number(first), last: last === "" ? undefined : Number(last) };
}

/** Returns the range in an object of a size; undefined if it has none of those bytes. */
export function rangeWithin(
  range: AskedRange | undefined,
  size: number,
): { readonly start: number; readonly end: number } | undefined {
  if (range === undefined) return { start: 0, end: size };
  if ("suffix" in range)
    return size === 0 ? undefined : { start: Math.max(0, size - range.suffix), end: size };
  if (range.start >= size) return undefined;
  return { start: range.start, end: Math.min(size, (range.last ?? size - 1) + 1) };
}

/** Parses the Content-Range header of a part; undefined if it says no such thing. */
export function parseContentRange(
  text: string | undefined,
): { readonly start: number; readonly end: number; readonly size: number } | undefined {
  const [, start, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(text ?? "") ?? [];
  if (start === undefined) return undefined;
  return { start: Number(start), end: Number(last) + 1, size: Number(size) };
}

/** Parts of a request that a signature covers. */
export type SignedRequest = Pick<IncomingMessage, "method" | "url" | "headers">;

/** Value of `authorization` with a signature of version 4 for S3. */
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

/** Longest time between a signature and its use, in milliseconds, as S3 has it. */
const MAX_AGE_MS = 15 * 60_000;

/**
 * Creates a function that returns the access key id of a request which somebody with the secret has signed (AWS Signature Version 4), and
 * undefined for all others. The hash of the body is part of the signature; whether the body has it, the service finds out.
 */
export function createSignatureCheck(secret: string): (request: SignedRequest) => string | undefined {
  let kept: { readonly scope: string; readonly key: Buffer } = { scope: "", key: Buffer.alloc(0) };

  /** Returns the key for a day and a region; the engine uses one at a time. */
  function keyFor(day: string, region: string): Buffer {
    const scope = `${day}/${region}/s3/aws4_request`;
    if (kept.scope !== scope) {
      const key = scope.split("/").reduce<string | Buffer>(hmac, `AWS4${secret}`);
      kept = { scope, key: key as Buffer };
    }
    return kept.key;
  }
  return (request) => {
    const [, id, day = "", region = "", names = "", signature = ""] =
      AUTHORIZATION.exec(request.headers.authorization ?? "") ?? [];
    const date = String(request.headers["x-amz-date"] ?? "");
    if (id === undefined || !date.startsWith(day) || !isRecent(date)) return undefined;
    // A signature without the host or the body could be one for something else.
    const covered = names.split(";");
    if (!["host", "x-amz-date", "x-amz-content-sha256"].every((name) => covered.includes(name)))
      return undefined;
    const hash = createHash("sha256").update(canonicalOf(request, names)).digest("hex");
    const text = `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/s3/aws4_request\n${hash}`;
    const expected = hmac(keyFor(day, region), text);
    return timingSafeEqual(expected, Buffer.from(signature, "hex")) ? id : undefined;
  };
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

/** Whether a time such as `20260301T093000Z` is near. */
function isRecent(date: string): boolean {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Math.abs(Date.now() - at) <= MAX_AGE_MS;
}

/** Returns the text of a request that its signer has hashed. */
function canonicalOf({ method, url = "", headers }: SignedRequest, names: string): string {
  const [path = ""] = url.split("?", 1);
  const query = [...new URLSearchParams(url.slice(path.length))]
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, value]) => `${strictly(name)}=${strictly(value)}`)
    .join("&");
  const lines = names.split(";").map((name) => `${name}:${String(headers[name] ?? "").trim()}\n`);
  return [method, path, query, lines.join(""), names, headers["x-amz-content-sha256"]].join("\n");
}

function strictly(text: string): string {
  const toPercent = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, toPercent);
}
