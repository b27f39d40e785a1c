import type { Row } from "./row.ts";
import type { Verdict } from "./verdicts.ts";

/** What can be asked of the catalog's rows. */
export interface CatalogView {
  get(objectId: string): Row | undefined;
  /** The ids of everything below a namespace, direct or not; of everything for the root. Changes end the iteration. */
  descendants(objectId: string): Iterable<string>;
  /** Whether there are direct children of any kind. */
  hasChildren(objectId: string): boolean;
  /** The table whose directory this is. */
  ownerOf(location: string): string | undefined;
  /** The locations that are not directly in the base; there are few. */
  nestedLocations(): Iterable<string>;
  /** What became of a change, by its id; undefined while that is open, and after it has been forgotten. */
  verdictOf(changeId: string): Verdict | undefined;
}

/** Changes to the rows, by object id; undefined stands for a row that goes away. */
export type Changes = ReadonlyMap<string, Row | undefined>;
