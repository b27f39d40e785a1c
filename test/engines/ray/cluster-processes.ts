import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RayHead } from "../ray-head.ts";

/** A job that runs, as the records of the gateway and the processes of the cluster show it. */
export interface ClusterJob {
  readonly driver: number | undefined;
  /** What the driver has reported about its progress. */
  readonly step: string | undefined;
  /** Whether a driver has reported the end of its run. */
  readonly hasReport: boolean;
}

/** Returns a process of a head by the beginning of its command line and a later part of it. */
export async function processOf(
  head: Pick<RayHead, "processes">,
  start: string,
  part = "",
): Promise<number | undefined> {
  for (const id of await head.processes()) {
    const command = await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "");
    if (command.startsWith(start) && command.includes(part)) return id;
  }
  return undefined;
}

/** Returns the job of a kind on a table of a catalog on the disk that has not ended; undefined if there is none. */
export async function jobOf(
  head: Pick<RayHead, "processes">,
  root: string,
  wanted: { readonly kind: string; readonly table: string },
): Promise<ClusterJob | undefined> {
  const directory = join(root, "data", ".jobs");
  const textOf = (...names: readonly string[]) => readFile(join(directory, ...names), "utf8").catch(() => "");
  for (const name of await readdir(join(directory, "open")).catch(() => [])) {
    const text = await textOf("open", name);
    if (text === "") continue;
    const { id, kind, table } = JSON.parse(text);
    if (kind !== wanted.kind || table.join("$") !== wanted.table) continue;
    const step = /"step":"(\w+)/.exec(await textOf("drivers", `${id}.progress`))?.[1];
    const names = await readdir(join(directory, "drivers")).catch(() => []);
    const hasReport = names.some((name) => name.startsWith(id) && name.endsWith(".report"));
    return { step, hasReport, driver: await processOf(head, "python\0-m\0lance_gateway_ray\0", id) };
  }
  return undefined;
}

/** Kills a process with everything that it may still have to do. */
export function kill(id: number | undefined): void {
  if (id !== undefined) process.kill(id, "SIGKILL");
}
