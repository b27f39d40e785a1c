import { type Disk, machineDisk } from "../../../src/backends/dir/format/local/disk.ts";

/** Failures that a system reports, and the calls that report them. */
export const FAULTS = {
  EIO: ["syncBytes", "syncNames", "write", "rename", "link", "unlink"],
  ENOSPC: ["create", "write", "link", "rename", "mkdir"],
  EMFILE: ["open", "create"],
} as const satisfies Record<string, readonly (keyof Disk)[]>;

export type FaultCode = keyof typeof FAULTS;

/** The moment at which a disk fails: a single call among those that report the failure, or all calls from it on. */
export interface Fault {
  readonly code: FaultCode;
  /** The index of the call, from 0. */
  readonly at: number;
  readonly lasts: boolean;
}

/** A disk that fails on request, and syncs nothing. */
export interface FaultyDisk {
  readonly disk: Disk;
  /** Begins to count calls. */
  arm(fault: Fault): void;
  /** Returns whether the disk failed; afterwards it works again. */
  disarm(): boolean;
}

export function createFaultyDisk(): FaultyDisk {
  let armed: Fault | undefined;
  let calls = 0;
  let failed = false;

  function mayFail(name: keyof Disk): void {
    if (armed === undefined || !(FAULTS[armed.code] as readonly string[]).includes(name)) return;
    const call = calls++;
    if (armed.lasts ? call < armed.at : call !== armed.at) return;
    failed = true;
    throw Object.assign(new Error(`${name} fails`), { code: armed.code });
  }
  const { open, create, write, link, mkdir } = machineDisk;
  /** Fails a call before it has an effect. */
  function now<A extends unknown[], R>(name: keyof Disk, call: (...args: A) => R) {
    return (...args: A): R => {
      mayFail(name);
      return call(...args);
    };
  }
  const later =
    <A extends unknown[], R>(name: keyof Disk, call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> =>
      now(name, call)(...args);
  const disk: Disk = {
    ...machineDisk,
    open: now("open", open),
    create: now("create", create),
    write: now("write", write),
    link: now("link", link),
    mkdir: now("mkdir", mkdir),
    syncBytes: later("syncBytes", async () => {}),
    syncNames: later("syncNames", async () => {}),
    rename: later("rename", machineDisk.rename),
    unlink: later("unlink", machineDisk.unlink),
  };
  return {
    disk,
    arm(fault) {
      [armed, calls, failed] = [fault, 0, false];
    },
    disarm() {
      armed = undefined;
      return failed;
    },
  };
}
