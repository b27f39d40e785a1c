/** Widths of the rows of recent results of a table, by the columns of the results. */
export interface RowWidths {
  /**
   * Returns the number of bytes of a row of the widest recent result; undefined if none was noted.
   *
   * @param columns the columns of the results as a text; undefined for columns of which no width is kept
   */
  of(columns: string | undefined): number | undefined;
  /** Begins a result, and returns the function that notes the rows and bytes of each of its batches. */
  begin(columns: string | undefined): (rows: number, bytes: number) => void;
  /** Notes that rows are expected to have that many bytes, whatever results have. */
  expect(columns: string | undefined, bytes: number): void;
  /** Returns the number of bytes of a row as first read for these columns; all callers share a read that succeeds. */
  sampled(columns: string, read: () => Promise<number>): Promise<number>;
}

interface Width {
  recent: number;
  expected: number;
}

/** Maximum number of choices of columns for which a table keeps the width. */
const MAX_CHOICES = 64;

/** How much of a width is left after the next result: a wide result counts for about forty narrow ones. */
const FADING = 0.9;

/** Creates an empty memory of widths. */
export function createRowWidths(): RowWidths {
  const widths = new Map<string, Width>();
  const samples = new Map<string, Promise<number>>();

  function widthOf(columns: string): Width {
    return widths.get(columns) ?? keep(widths, columns, { recent: 0, expected: 0 });
  }

  return {
    of(columns) {
      const width = columns === undefined ? undefined : widths.get(columns);
      return width && Math.max(width.recent, width.expected);
    },
    begin(columns) {
      // A long result has many batches, but fades the widths of others once.
      let fading = FADING;
      return (rows, bytes) => {
        if (columns === undefined || rows === 0) return;
        const width = widthOf(columns);
        width.recent = Math.max(bytes / rows, fading * width.recent);
        fading = 1;
      };
    },
    expect(columns, bytes) {
      if (columns !== undefined) widthOf(columns).expected = bytes;
    },
    sampled(columns, read) {
      const known = samples.get(columns);
      if (known !== undefined) return known;
      const sample = read();
      sample.catch(() => samples.delete(columns));
      return keep(samples, columns, sample);
    },
  };
}

/** Keeps a value for a choice of columns, in the place of that for the oldest choice if there are many. */
function keep<T>(values: Map<string, T>, columns: string, value: T): T {
  const [oldest] = values.keys();
  if (oldest !== undefined && values.size >= MAX_CHOICES) values.delete(oldest);
  values.set(columns, value);
  return value;
}

/** Maximum number of rows of a batch of a result. */
export const MAX_BATCH_ROWS = 8192;

/** Maximum number of rows of a batch whose width is known exactly. */
export const MAX_EXACT_ROWS = 65_536;

/** Target size of a batch, in bytes; the engine reads a few batches ahead. */
const BATCH_BYTES = 2 * 1024 * 1024;

/**
 * Returns the number of rows of a batch.
 *
 * @param width that of a row, in bytes
 * @param most number of rows of a batch of narrow rows
 */
export function batchRowsOf(width: number, most: number): number {
  return Math.min(most, Math.max(1, Math.floor(BATCH_BYTES / width)));
}
