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
