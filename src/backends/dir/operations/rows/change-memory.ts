import type { Measured } from "../read/count-rows.ts";
import { checkMemory } from "../read/memory-room.ts";
import { COLUMN_BYTES, sizeOfColumns, sizeOfExpressions } from "../read/sampled-width.ts";

/** Number of rows that the engine reads at a time when it changes rows; its Node API has no option for it. */
const BATCH_ROWS = 8192;

/** How often the engine holds each row: as read, and decoded. */
const TIMES = 2;

/** The parts of a table that the engine reads for a change. */
export interface ChangeReads {
  /** SQL expressions, which it evaluates for all rows. */
  readonly expressions: readonly (string | undefined)[];
  /** Whether it reads all columns of all rows. */
  readonly whole?: boolean;
}

/**
 * Returns the number of bytes that the engine holds while it reads all rows for a change; 0 for narrow rows, and for few wide ones.
 *
 * @throws LanceError the errors of `wait`
 */
export async function memoryOfReads(
  data: Measured,
  { expressions, whole = false }: ChangeReads,
): Promise<number> {
  const named = expressions.filter((expression) => expression !== undefined);
  const size = whole
    ? await sizeOfColumns((await data.schema()).fields, data)
    : await sizeOfExpressions(named, data);
  return size === undefined ? 0 : worthRoom(bytesOf(await data.rowCount(), size.width));
}

/**
 * Returns the number of bytes that the engine holds for an update, as {@link memoryOfReads} does.
 *
 * @param where the checked condition; undefined for all rows
 * @param countFound counts the rows that are written again; called for a table with wide rows
 * @throws LanceError the errors of `wait` and of `countFound`
 */
export async function memoryOfUpdate(
  data: Measured,
  where: string | undefined,
  countFound: () => Promise<number>,
): Promise<number> {
  const written = await sizeOfColumns((await data.schema()).fields, data);
  if (written === undefined) return 0;
  const found = bytesOf(await countFound(), written.width);
  return worthRoom((await memoryOfReads(data, { expressions: [where] })) + found);
}

/** Refuses a change for which the engine might run out of memory. @throws LanceError InvalidInput */
export function checkChange(bytes: number): void {
  checkMemory(bytes, "change fewer rows at a time, and find them by narrow columns");
}

function bytesOf(rows: number, width: number): number {
  return TIMES * Math.min(rows, BATCH_ROWS) * width;
}

function worthRoom(bytes: number): number {
  return bytes > COLUMN_BYTES ? bytes : 0;
}
