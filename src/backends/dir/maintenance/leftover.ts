import type { TableContext } from "../catalog/catalog-context.ts";
import { keyIn } from "../format/storage.ts";
import { measure } from "../format/table-files.ts";

/** Kinds of leftovers of crashes, and their explanations. */
export const LEFTOVER_KINDS = {
  "dropped table": "the files of a table that has been dropped",
  "staged data": "rows of an upload that never became part of a table",
  upload: "parts of a multipart write that nobody completed or aborted",
  "unfinished table": "a directory of the table format without a version and without a row",
  "unlisted data": "a dataset without a row: deregistered, dropped elsewhere, or not registered yet",
  note: "a note of a change of several files whose process has ended",
  "work note": "the note of long work on a table whose process has ended",
  "job file": "a file of a job that is no longer open",
  "function file": "a record about functions for a namespace or a table that has been dropped",
  lease: "the lease by which gateways took turns with a table that is gone",
  "kept answer": "answers to calls with idempotency keys that nobody may repeat any more",
  "manifest file": "a file in the catalog's manifest that none of its versions has",
  "table file": "a file in the directory of a table that none of its versions has",
  "temporary file": "what a process was writing when it ended",
  probe: "an object that a gateway wrote to try the storage or to ask it for the time",
} as const;

/** A storage, and the directory in it to which the paths of leftovers are relative. */
export interface LeftoverPlace extends Pick<TableContext, "store"> {
  readonly layout: Pick<TableContext["layout"], "baseKey">;
}

/** A kind of leftover. */
export type LeftoverKind = keyof typeof LEFTOVER_KINDS;

/** A leftover of a crash. */
export interface Leftover {
  readonly kind: LeftoverKind;
  /** Relative to the base directory. */
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
  /** When anything in it was last written, in milliseconds since 1970; undefined for directories without files. */
  readonly modifiedMillis: number | undefined;
  /**
   * Checks again and removes it.
   *
   * @returns false if it is in use by now, and stays
   */
  remove(): Promise<boolean>;
}

/** Whether the newest file was written before a time; false without files. */
export function isOld(modifiedMillis: number | undefined, before: number): boolean {
  return modifiedMillis !== undefined && modifiedMillis < before;
}

/** Yields a file as a leftover, if it exists and is old enough. */
export async function* fileLeftover(
  { store, layout }: LeftoverPlace,
  kind: LeftoverKind,
  key: string,
  before: number,
): AsyncGenerator<Leftover> {
  const info = await store.head(key);
  if (info === undefined || !isOld(info.modifiedMillis, before)) return;
  yield {
    kind,
    path: relativeKey(layout.baseKey, key),
    files: 1,
    bytes: info.size,
    modifiedMillis: info.modifiedMillis,
    remove: () => store.delete(key),
  };
}

/**
 * Yields a directory as a leftover, if it is old enough.
 *
 * @param mayGo checks once more, before the directory is removed
 */
export async function* directoryLeftover(
  { store, layout }: LeftoverPlace,
  kind: LeftoverKind,
  key: string,
  before: number,
  mayGo: () => Promise<boolean> = async () => true,
): AsyncGenerator<Leftover> {
  const extent = await measure(store, key);
  if (!isOld(extent.modifiedMillis, before)) return;
  yield {
    kind,
    path: relativeKey(layout.baseKey, key),
    ...extent,
    async remove() {
      if (!isOld((await measure(store, key)).modifiedMillis, before) || !(await mayGo())) return false;
      await store.deleteDirectory(key);
      return true;
    },
  };
}

/** Returns a key relative to a directory. */
export function relativeKey(directory: string, key: string): string {
  return key.slice(keyIn(directory, "").length);
}
