import type { Connection } from "../session/connection.ts";
import type { Permissions } from "../session/told-facts.ts";
import type { Params } from "../shell/route.ts";

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
  /** Whether its catalog supports an operation. */
  supports(operation: string): boolean;
  /** Version that is shown, which is another one after a change. */
  readonly current: bigint | undefined;
  /** What the address says of the view. */
  readonly params: Params;
  /** Changes what the address says of the view; undefined removes an entry. */
  onParams(change: Readonly<Record<string, string | undefined>>): void;
}
