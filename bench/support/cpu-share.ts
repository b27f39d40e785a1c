import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const GROUPS = "/sys/fs/cgroup/cpu";
/** Length of the period in which a group gets its share, in microseconds; shorter than a search, so that none waits for a whole share. */
const PERIOD = 5_000;

/**
 * Limits a process and its threads to a share of a core. Linux with control groups of version 1, as root.
 *
 * @returns a function that removes the limit once the process has ended
 * @throws Error if the machine has no such groups
 */
export function limitCpu(pid: number, share: number): () => void {
  if (!existsSync(join(GROUPS, "cpu.cfs_quota_us"))) throw new Error(`no control groups at ${GROUPS}`);
  const group = join(GROUPS, `lance-gateway-bench-${pid}`);
  mkdirSync(group);
  writeFileSync(join(group, "cpu.cfs_period_us"), String(PERIOD));
  writeFileSync(join(group, "cpu.cfs_quota_us"), String(Math.round(PERIOD * share)));
  writeFileSync(join(group, "cgroup.procs"), String(pid));
  return () => rmdirSync(group);
}
