/** Widths of the rows of recent results of a table, by the columns of the results. */
export interface RowWidths {
  /**
   * Returns the number of bytes of a row of the widest recent result; undefined if none was noted.
   *
   * @param columns the columns of the results as a text; undefined for columns of which no width is kept
   */
  of(columns: string | undefined): number | undefined;
  /** Notes the rows of a result and their bytes. */
  note(columns: string | undefined, rows: number, bytes: number): void;
}

/** Maximum number of choices of columns for which a table keeps the width. */
const MAX_CHOICES = 64;

/** How much of a width is left after the next result: a wide result counts for about forty narrow ones. */
const FADING = 0.9;

/** Creates an empty memory of widths. */
export function createRowWidths(): RowWidths {
  const widths = new Map<string, number>();
  return {
    of: (columns) => (columns === undefined ? undefined : widths.get(columns)),
    note(columns, rows, bytes) {
      if (columns === undefined || rows === 0) return;
      const known = widths.get(columns);
      if (known === undefined && widths.size >= MAX_CHOICES) {
        const [oldest] = widths.keys();
        widths.delete(oldest as string);
      }
      widths.set(columns, Math.max(bytes / rows, FADING * (known ?? 0)));
    },
  };
}
