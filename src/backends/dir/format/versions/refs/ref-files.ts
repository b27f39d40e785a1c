import { forEachOf } from "../../../concurrency/for-each.ts";
import { type DatasetRef, refsDirectory } from "../../dataset.ts";
import { damagedFile, parseJsonFile } from "../../files/damaged-file.ts";
import { listNames } from "../../storage.ts";

/** The kinds of refs, as the names of their directories. */
export type RefKind = "tags" | "branches";

/** The content of a ref's file. */
export type RefContent = Readonly<Record<string, unknown>>;

/** Number of tags or branches that are read concurrently: one after the other, a thousand in a bucket take half a minute. */
const READS = 16;

/** Returns the key of a ref. The engine percent-encodes names in keys, because of slashes and of letters outside ASCII. */
export function refKey(dataset: DatasetRef, kind: RefKind, name: string): string {
  return `${refsDirectory(dataset, kind)}/${encodeURIComponent(name)}.json`;
}

/**
 * Lists the refs of a kind, by name.
 *
 * @param read reads a ref; returns undefined if it does not exist
 */
export async function listRefs<T>(
  dataset: DatasetRef,
  kind: RefKind,
  read: (dataset: DatasetRef, name: string) => Promise<T | undefined>,
): Promise<Map<string, T>> {
  const files = await listNames(dataset.store, refsDirectory(dataset, kind));
  const names = files.filter((file) => file.endsWith(".json")).map((file) => nameOf(file));
  const refs = new Map<string, T | undefined>(names.sort().map((name) => [name, undefined]));
  await forEachOf(names, READS, async (name) => refs.set(name, await read(dataset, name)));
  // Another process may have deleted some since the listing.
  return new Map([...refs].filter((entry): entry is [string, T] => entry[1] !== undefined));
}

/** Reads the file of a ref; returns undefined if it does not exist. */
export async function readRef({ store }: DatasetRef, key: string): Promise<RefContent | undefined> {
  const bytes = await store.get(key);
  return bytes && parseJsonFile(key, bytes);
}

/** Encodes the content of a ref's file as the engine does. */
export function encodeRef(content: RefContent): Uint8Array {
  return Buffer.from(JSON.stringify(content, null, 2));
}

/** Returns a text in the file of a ref; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns an integer in the file of a ref; 0 for anything else. */
export function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isInteger(value) ? value : 0;
}

/** Returns the name of a ref that the name of a file encodes. */
function nameOf(file: string): string {
  try {
    return decodeURIComponent(file.slice(0, -5));
  } catch (error) {
    throw damagedFile(file, "is not the name of a ref", error);
  }
}
