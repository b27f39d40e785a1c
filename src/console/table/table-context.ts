import type { Connection } from "../session/connection.ts";
import type { Permissions } from "../session/permissions.ts";

/** The state of a table that a page shows. */
export interface Moment {
  /** Default: the newest. */
  readonly version?: bigint | undefined;
  /** Default: the main branch. */
  readonly branch?: string | undefined;
}

/** The table of a page. */
export interface TableContext {
  readonly connection: Connection;
  readonly id: readonly string[];
  readonly at: Moment;
  /** What the caller may do to it. */
  readonly permissions: Permissions;
}

/** A vector of a row, to search for rows like it. */
export interface Like {
  readonly column: string;
  readonly values: ArrayLike<number>;
}
