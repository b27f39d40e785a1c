import { LanceError } from "../../namespace/errors.ts";

/** Most rows, and characters, that are converted at a time. */
export const BATCH_ROWS = 8192;
export const BATCH_CHARACTERS = 4 * 1024 * 1024;

/** Some rows of a text, by their columns. */
export interface RowBatch<T> {
  /** Values of each column, in the order of the columns; undefined where a row has none. */
  readonly columns: ReadonlyMap<string, readonly (T | undefined)[]>;
  /** Number of the line on which each row begins, from 1. */
  readonly lines: readonly number[];
}

/**
 * Does something with each value of a column.
 *
 * @throws LanceError InvalidInput that names the column and the line, if that fails.
 */
export function forEachValue<T>(
  { columns, lines }: RowBatch<T>,
  name: string,
  use: (value: T | undefined, row: number) => void,
): void {
  const values = columns.get(name) ?? [];
  for (let row = 0; row < lines.length; row++) {
    try {
      use(values[row], row);
    } catch (cause) {
      const place = `column ${JSON.stringify(name)}, line ${lines[row]}`;
      throw new LanceError("InvalidInput", `${place}: ${(cause as Error).message}`, { cause });
    }
  }
}
