import type { Random } from "../../test/support/random.ts";
import { FIRST_ROWS, type Row } from "./rows.ts";

/** The rows and tables that a client has written, and that the gateways must therefore have. */
export interface Ledger {
  readonly owner: number;
  /** The rows that exist, by their ids. */
  readonly rows: Map<number, Row>;
  /** Ids of rows that are deleted. */
  readonly deleted: number[];
  /** Ids of rows whose last change failed, so that they may or may not have it. */
  readonly unknown: Set<number>;
  /** Names of the small tables in the client's namespace. */
  readonly tables: Set<string>;
  /** Whether a creation or drop of a small table failed. */
  tablesUnknown: boolean;
  /** Returns rows with ids that no row has had. */
  newRows(count: number): Row[];
  /** Returns one of the existing rows. */
  pick(random: Random): Row;
}

/** Creates the ledger of a client, with its share of the first rows. */
export function createLedger(owner: number, clients: number): Ledger {
  const rows = new Map<number, Row>();
  let next = owner;
  const newRow = (): Row => {
    const row = { id: next, owner, revision: 0 };
    next += clients;
    return row;
  };
  while (next < FIRST_ROWS) {
    const row = newRow();
    rows.set(row.id, row);
  }
  return {
    ...{ owner, rows, deleted: [], unknown: new Set(), tables: new Set(), tablesUnknown: false },
    newRows: (count) => Array.from({ length: count }, newRow),
    pick: (random) => random.pick([...rows.values()]),
  };
}
