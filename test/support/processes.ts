import { readdir, readFile } from "node:fs/promises";

/** Processes by their ids, each with the id of the one that started it; Linux only. */
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

/** A process and all below it. */
export async function processTree(root: number): Promise<readonly number[]> {
  const all = await allProcesses();
  const tree = [root];
  for (const id of tree) tree.push(...[...all].filter(([, parent]) => parent === id).map(([child]) => child));
  return tree;
}

/** Resolves when none of the processes runs any more. */
export async function allEnded(ids: readonly number[]): Promise<void> {
  for (;;) {
    const all = await allProcesses();
    if (!ids.some((id) => all.has(id))) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
