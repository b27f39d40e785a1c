import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { expiryOf } from "../../namespace/credential-options.ts";

/** How long an answer may be used, in milliseconds since it was requested. */
export interface Lifetime {
  /** Without revalidation. */
  readonly freshMs: number;
  /** After revalidation by the upstream. */
  readonly usableMs: number;
}

interface Answer extends Message {
  context?: Record<string, string>;
  storageOptions?: Record<string, string>;
}

/** How long before their expiry credentials are no longer returned, in milliseconds: a client needs some time. */
const CREDENTIALS_MARGIN_MS = 60_000;
const MAX_AGE = /(?:^|[\s,])max-age\s*=\s*"?(\d+)/i;

/**
 * Returns how long an answer may be used.
 *
 * @param ttlMs how long without revalidation, unless the upstream or credentials in the answer say less
 */
export function lifetimeOf(answer: Message, ttlMs: number, cacheControl = ""): Lifetime {
  const usableMs = /\bno-store\b/i.test(cacheControl) ? 0 : credentialsMs(answer);
  return { freshMs: Math.min(freshByHeader(cacheControl, ttlMs), usableMs), usableMs };
}

function freshByHeader(cacheControl: string, ttlMs: number): number {
  if (/\bno-cache\b/i.test(cacheControl)) return 0;
  const [, seconds] = MAX_AGE.exec(cacheControl) ?? [];
  return seconds === undefined ? ttlMs : Math.min(ttlMs, Number(seconds) * 1000);
}

const TEMPORARY = /token|sas|signature|expir/i;

/** Returns how long the credentials in an answer may be returned; 0 if they seem temporary but have no expiry. */
function credentialsMs({ storageOptions = {} }: Answer): number {
  const expiry = expiryOf(storageOptions);
  if (expiry !== undefined) return Math.max(expiry - Date.now() - CREDENTIALS_MARGIN_MS, 0);
  return Object.keys(storageOptions).some((key) => TEMPORARY.test(key)) ? 0 : Number.POSITIVE_INFINITY;
}

/** Headers that describe the object; all others describe an exchange. */
const LASTING: ReadonlySet<string> = new Set(["etag", "deprecation", "sunset"]);
const CONTEXT_PREFIX = "header.";

/** Returns the headers of a cached answer. */
export function lastingHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => LASTING.has(name)));
}

/** Returns an answer without the parts that describe its exchange. */
export function packAnswer(schema: DescMessage, answer: Message): Uint8Array {
  const { context } = answer as Answer;
  if (context === undefined) return toBinary(schema, answer);
  const lasting = Object.entries(context).filter(
    ([key]) => !key.startsWith(CONTEXT_PREFIX) || LASTING.has(key.slice(CONTEXT_PREFIX.length)),
  );
  return toBinary(schema, { ...answer, context: Object.fromEntries(lasting) } as Message);
}
