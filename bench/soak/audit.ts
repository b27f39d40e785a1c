import { rowsOf } from "../../test/support/arrow.ts";
import type { LanceClient } from "../../test/support/client.ts";
import type { Ledger } from "./ledger.ts";
import { TABLE, textOf } from "./rows.ts";

/** The differences between what clients have written and what the table contains. */
export interface Audit {
  readonly expected: number;
  /** Answer of CountTableRows. */
  readonly counted: number;
  /** Rows that a client wrote and that the table lacks. */
  readonly lost: number;
  /** Rows that the table has more than once, or after their deletion. */
  readonly surplus: number;
  /** Rows with another content than the last written one. */
  readonly stale: number;
  /** Rows whose last change failed, so that either content is right. */
  readonly unknown: number;
}

/** Reads the whole table and compares it with the ledgers of all clients. */
export async function audit(client: LanceClient, ledgers: readonly Ledger[]): Promise<Audit> {
  const rows = new Map(ledgers.flatMap((ledger) => [...ledger.rows]));
  const unknown = new Set(ledgers.flatMap((ledger) => [...ledger.unknown]));
  const { count } = await client.countTableRows({ id: TABLE });
  const { bytes } = await client.queryTable({ id: TABLE, columns: { columnNames: ["id", "text"] } });
  const found = rowsOf(bytes) as { id: number; text: string }[];
  const seen = new Set<number>();
  let [surplus, stale] = [0, 0];
  for (const { id, text } of found) {
    const row = rows.get(id);
    if (seen.has(id) || (row === undefined && !unknown.has(id))) surplus += 1;
    else if (row !== undefined && text !== textOf(row)) stale += 1;
    seen.add(id);
  }
  const lost = [...rows.keys()].filter((id) => !seen.has(id)).length;
  return { expected: rows.size, counted: Number(count), lost, surplus, stale, unknown: unknown.size };
}
