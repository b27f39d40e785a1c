import { collect } from "./collect.ts";

/**
 * Returns by how many bytes the heap has grown between the beginning of work and its call of `measure`, without what can be
 * collected.
 */
export async function heapGrowth(work: (measure: () => void) => Promise<void>): Promise<number> {
  collect();
  const before = process.memoryUsage().heapUsed;
  let after: number | undefined;
  await work(() => {
    collect();
    after = process.memoryUsage().heapUsed;
  });
  if (after === undefined) throw new Error("nothing was measured");
  return after - before;
}
