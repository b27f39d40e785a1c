import type { CellShape, KeyedCells } from "../../runtime/threads/keyed-cells.ts";

/** A bound on what each caller holds of something, over all workers. */
export interface Quota {
  /** Amount that a caller may hold. */
  readonly max: number;
  /** Takes an amount for a caller; returns false, and takes nothing, if the caller would hold more than it may. */
  take(caller: string, amount: number): boolean;
  /** Returns what was taken. */
  release(caller: string, amount: number): void;
}

/** Shape of the numbers of a quota: what each worker has handed out. */
export const QUOTA_SHAPE: CellShape = { numbers: "worker" };

/**
 * Creates a quota.
 *
 * @param max what a caller may hold
 * @param cells of the shape {@link QUOTA_SHAPE}
 */
export function createQuota(max: number, cells: KeyedCells): Quota {
  const { worker, numbers: workers } = cells;

  function add(caller: string, amount: number): boolean | undefined {
    return cells.change(caller, (numbers, at) => {
      let held = amount;
      for (let each = 1; each <= workers; each++) held += numbers[at + each] as number;
      if (amount > 0 && held > max) return false;
      numbers[at + 1 + worker] = (numbers[at + 1 + worker] as number) + amount;
      // A caller that holds something is never forgotten.
      numbers[at] = held > 0 ? Number.POSITIVE_INFINITY : 0;
      return true;
    });
  }
  return {
    max,
    take: (caller, amount) => add(caller, amount) ?? false,
    release: (caller, amount) => void add(caller, -amount),
  };
}
