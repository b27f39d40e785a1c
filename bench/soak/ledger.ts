import type { Random } from "../../test/support/random.ts";
import type { Row } from "./rows.ts";

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
  /** Returns the existing rows that the next deletion removes. */
  pickDoomed(random: Random): Row[];
}

/** Size of the table in a soak. */
export interface TableSize {
  /** Number of rows at the start. */
  readonly rows: number;
  /** Whether each deletion removes all rows that its client has added since the one before, so that the table stays as large. */
  readonly isSteady: boolean;
}

/** Creates the ledger of a client, with its share of the first rows. */
export function createLedger(owner: number, clients: number, size: TableSize): Ledger {
  const rows = new Map<number, Row>();
  let next = owner;
  const newRow = (): Row => {
    const row = { id: next, owner, revision: 0 };
    next += clients;
    return row;
  };
  while (next < size.rows) {
    const row = newRow();
    rows.set(row.id, row);
  }
  const share = rows.size;
  return {
    ...{ owner, rows, deleted: [], unknown: new Set(), tables: new Set(), tablesUnknown: false },
    newRows: (count) => Array.from({ length: count }, newRow),
    pick: (random) => random.pick([...rows.values()]),
    pickDoomed(random) {
      const left = [...rows.values()];
      const count = size.isSteady ? Math.max(1, left.length - share) : 1;
      return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)).flat();
    },
  };
}
