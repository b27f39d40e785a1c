import type { TableContext } from "../catalog/catalog-context.ts";
import { keyIn } from "../format/storage.ts";

/** The kinds of what crashes leave behind, and how each is explained. */
export const LEFTOVER_KINDS = {
  "dropped table": "the files of a table that has been dropped",
  "staged data": "rows of an upload that never became part of a table",
  upload: "parts of a multipart write that nobody completed or aborted",
  "unfinished table": "a directory of the table format without a version and without a row",
  "unlisted data": "a dataset without a row: deregistered, dropped elsewhere, or not registered yet",
  note: "a note of a change of several files whose process has ended",
  "job file": "a file of a job that is no longer open",
  "manifest file": "a file in the catalog's manifest that none of its versions has",
  "temporary file": "what a process was writing when it ended",
  probe: "an object that a gateway wrote to try the storage or to ask it for the time",
} as const;

/** A kind of leftover. */
export type LeftoverKind = keyof typeof LEFTOVER_KINDS;

/** Something that a crash left behind. */
export interface Leftover {
  readonly kind: LeftoverKind;
  /** Relative to the base directory. */
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
  /** When something in it was last written, in milliseconds since 1970; undefined for directories without files. */
  readonly modifiedMillis: number | undefined;
  /**
   * Looks again and removes it.
   *
   * @returns false when it is no leftover any more, and stays
   */
  remove(): Promise<boolean>;
}

/** Whether the newest of something was written before a time; what has no file has no age. */
export function isOld(modifiedMillis: number | undefined, before: number): boolean {
  return modifiedMillis !== undefined && modifiedMillis < before;
}

/** A file as a leftover, if it is there and old enough. */
export async function* fileLeftover(
  { store, layout }: Pick<TableContext, "store" | "layout">,
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

/** A key from a directory on. */
export function relativeKey(directory: string, key: string): string {
  return key.slice(keyIn(directory, "").length);
}
