import {
  allocateCells,
  type CellShape,
  type CellsOwner,
  clearWorker,
  type OpenCells,
  openCells,
} from "../../runtime/threads/keyed-cells.ts";

/** Memory for the numbers of limits, by name. */
export type CellsMemory = Readonly<
  Record<string, { readonly shape: CellShape; readonly memory: SharedArrayBuffer }>
>;

/** Allocates the memory for the numbers of some limits, which the workers of a process share. */
export function allocateAll(shapes: Readonly<Record<string, CellShape>>, workers: number): CellsMemory {
  const entries = Object.entries(shapes);
  return Object.fromEntries(
    entries.map(([name, shape]) => [name, { shape, memory: allocateCells(shape, workers) }]),
  );
}

/** Returns the numbers of limits as a worker sees them. */
export function openAll(all: CellsMemory, owner: CellsOwner): OpenCells {
  return (name) => {
    const found = all[name];
    if (found === undefined) throw new Error(`the workers do not share ${name}`);
    return openCells(found.shape, owner, found.memory);
  };
}

/** Takes back what a worker has counted and locked that has ended. */
export function clearAll(all: CellsMemory, owner: CellsOwner): void {
  for (const { shape, memory } of Object.values(all)) clearWorker(shape, owner, memory);
}
