import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import type { Lease } from "../../engine/handles.ts";
import type { UploadContext } from "../context.ts";
import { isMain, openData } from "../tables/open-data.ts";
import { isWritten } from "../tables/table-data.ts";
import { watchForDrop } from "../tables/watch-for-drop.ts";
import { writeFirst } from "./first-version.ts";
import { type ReceivedRows, receiveRows } from "./received-rows.ts";

/** The target of rows, and whether they replace the existing ones. */
export interface InsertTarget {
  readonly table: FoundTable;
  readonly branch: string | undefined;
  readonly overwrite: boolean;
  /** The data of the table, if the caller has opened it; then it is not a declared table. */
  readonly opened?: Lease | undefined;
}

/** The outcome of an insert. */
export interface InsertOutcome {
  readonly rows: bigint;
  readonly version: bigint;
}

/**
 * Longest upload after which rows are added to the table as it was opened, in milliseconds. After a longer one it is opened again: it may
 * have been dropped, and the engine would bring it back as a table without its files.
 */
const FRESH_MS = 1_000;

/**
 * Writes the rows of an Arrow IPC stream to a table as one version; a declared table gets its first version.
 *
 * @throws LanceError the errors of {@link receiveRows}
 */
export function insertRows(
  context: DataContext & UploadContext,
  { table, branch, overwrite, opened }: InsertTarget,
  data: AsyncIterable<Uint8Array>,
  call: Call,
): Promise<InsertOutcome> {
  const sinceOpen = startStopwatch();
  const place = { storage: context, table };
  return receiveRows(context, data, call, { place, branch, overwrite }, async (rows) => {
    const current = sinceOpen() < FRESH_MS ? opened : undefined;
    if (current === undefined && isMain(branch) && !overwrite) return outcome(await appendOrBegin(rows));
    const mayBeFirst = isMain(branch) && current === undefined;
    const first = mayBeFirst ? await firstVersion(context, table, rows) : undefined;
    return outcome(first ?? (await (overwrite ? rows.replace(table) : rows.append(table, current))));

    function outcome(version: number): InsertOutcome {
      return { rows: BigInt(rows.rows), version: BigInt(version) };
    }
  });

  /** Opens the table for the rows, which takes fewer looks at the storage than to ask first whether it has data. */
  async function appendOrBegin(rows: ReceivedRows): Promise<number> {
    const watch = watchForDrop(context, table);
    const lease = await openIfWritten(context, table);
    try {
      const first = lease === undefined ? await firstVersion(context, table, rows) : undefined;
      return first ?? (await rows.append(table, lease, watch));
    } finally {
      lease?.release();
    }
  }
}

/** Returns undefined for a table without data. */
async function openIfWritten(context: DataContext, table: FoundTable): Promise<Lease | undefined> {
  try {
    return await openData(context, table, {});
  } catch (error) {
    if (isLanceError(error, "TableNotFound")) return undefined;
    throw error;
  }
}

/** Gives a declared table its data; returns undefined when it has some. */
async function firstVersion(
  context: DataContext,
  table: FoundTable,
  rows: ReceivedRows,
): Promise<number | undefined> {
  if (await isWritten(context, table)) return undefined;
  try {
    return await writeFirst(context, table, () => rows.create(table));
  } catch (error) {
    if (isLanceError(error, "TableAlreadyExists")) return undefined;
    throw error;
  }
}
