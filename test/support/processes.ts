import { readdir, readFile } from "node:fs/promises";

/** Returns the parents of all processes, by their ids; Linux only. */
async function allProcesses(): Promise<Map<number, number>> {
  const ids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found = await Promise.all(
    ids.map(async (id) => {
      const stat = await readFile(`/proc/${id}/stat`, "utf8").catch(() => "");
      const [, state, parent] = /\) (\S) (\d+)/.exec(stat) ?? [];
      return state === undefined || state === "Z" ? undefined : ([id, Number(parent)] as const);
    }),
  );
  return new Map(found.filter((entry) => entry !== undefined));
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
    const all = await allProcesses();
    if (!ids.some((id) => all.has(id))) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
