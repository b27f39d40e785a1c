/** Kinds of files whose bytes never change under their names. */
export type CacheableKind = "index" | "deletions" | "data" | "transaction";

/** A random part of a name: a UUID, or the random names of data files, of which every writer draws its own. */
const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const DRAWN = `(?:${UUID}|[01]{24}[0-9a-f]{26}|[0-9a-f]{32})`;

/**
 * The files that may be answered from a cache, by the ends of their keys: the only table of them (docs/cache.md).
 *
 * Each pattern demands a name with at least 64 random bits. A writer of the format draws it, writes the file once, and never changes it,
 * so that the name says which bytes they are. Everything else is read from the bucket each time: manifests, whose numbers a table that is made
 * again has again; hints, refs, marks, jobs, and all other names that mean something.
 */
const CACHEABLE: readonly (readonly [kind: CacheableKind, pattern: RegExp])[] = [
  ["index", new RegExp(`(?:^|/)_indices/${UUID}/(?:[^/.][^/]*/)*[^/.][^/]*$`)],
  ["deletions", /(?:^|\/)_deletions\/\d+-\d+-\d+\.(?:arrow|bin)$/],
  ["data", new RegExp(`(?:^|/)data/${DRAWN}\\.lance$`)],
  // Large values of a data file, in a directory with its name.
  ["data", new RegExp(`(?:^|/)data/${DRAWN}/[^/.][^/]*\\.blob$`)],
  ["transaction", new RegExp(`(?:^|/)_transactions/\\d+-${UUID}\\.txn$`)],
];

/** Parts of a key below which nothing is kept: the catalog itself, and what the gateway writes for a while (docs/storage.md). */
const NEVER = /(?:^|\/)(?:__manifest|\.[^/]*)\//;

/** Returns the kind of the file with a key; undefined for a file that is never answered from the cache. */
export function cacheableKindOf(key: string): CacheableKind | undefined {
  if (NEVER.test(key)) return undefined;
  return CACHEABLE.find(([, pattern]) => pattern.test(key))?.[0];
}

/** Beginning of the headers of encryption with a key that only the client has (SSE-C). */
const CUSTOMER_KEY = "x-amz-server-side-encryption-customer-";

/** Whether a request or an answer is about an object that only a reader with its key may have, so that it is not kept. */
export function hasCustomerKey(headers: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(headers).some((name) => name.startsWith(CUSTOMER_KEY));
}
