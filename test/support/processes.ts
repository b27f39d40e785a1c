import { readdir, readFile } from "node:fs/promises";

/** Returns the parent of a process; none if it has ended. Linux only. */
async function parentOf(id: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${id}/stat`, "utf8").catch(() => "");
  const [, state, parent] = /\) (\S) (\d+)/.exec(stat) ?? [];
  return state === undefined || state === "Z" ? undefined : Number(parent);
}

/** Returns the parents of all processes, by their ids. */
async function allProcesses(): Promise<ReadonlyMap<number, number | undefined>> {
  const ids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  return new Map(await Promise.all(ids.map(async (id) => [id, await parentOf(id)] as const)));
}

/** Returns the ids of a process and all its descendants. */
export async function processTree(root: number): Promise<readonly number[]> {
  const all = await allProcesses();
  const tree = [root];
  for (const id of tree) tree.push(...[...all].filter(([, parent]) => parent === id).map(([child]) => child));
  return tree;
}

/** Resolves when all of the processes have ended. */
export async function allEnded(ids: readonly number[]): Promise<void> {
  for (;;) {
    const parents = await Promise.all(ids.map(parentOf));
    if (parents.every((parent) => parent === undefined)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
