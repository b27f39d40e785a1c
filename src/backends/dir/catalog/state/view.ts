import type { Row } from "./row.ts";
import type { Verdict } from "./verdicts.ts";

/** Queries of the catalog's rows. */
export interface CatalogView {
  get(objectId: string): Row | undefined;
  /**
   * Yields the ids of everything below a namespace, at any depth; of everything for the root. Changes end the
   * iteration.
   */
  descendants(objectId: string): Iterable<string>;
  /** Whether there are direct children of any kind. */
  hasChildren(objectId: string): boolean;
  /** Returns the table whose directory this is. */
  ownerOf(location: string): string | undefined;
  /** Yields the locations of tables inside a directory, at any depth. Changes end the iteration. */
  locationsInside(directory: string): Iterable<string>;
  /** Returns the outcome of a change, by its id; undefined while it is open, and after it has been forgotten. */
  verdictOf(changeId: string): Verdict | undefined;
}

/** Changes to the rows, by object id; undefined removes a row. */
export type Changes = ReadonlyMap<string, Row | undefined>;
