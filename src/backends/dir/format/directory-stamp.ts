import type { DirectoryStamp } from "./storage.ts";

/**
 * How long after a stamp was seen the next change of the directory gets another one, in milliseconds. Linux gives
 * times in ticks of up to 10 ms, and other systems know 100 ns to 10 ms.
 */
const TICK_MS = 100;

/** The same where the time is a whole second: there are file systems that know only every second one. */
const COARSE_TICK_MS = 2100;

/** Whether two stamps are of one directory, and nothing came into it or left it between them, if both were stable. */
export function isSame(a: DirectoryStamp, b: DirectoryStamp | undefined): boolean {
  return a.identity === b?.identity && a.modifiedNs === b.modifiedNs && a.changedNs === b.changedNs;
}

/** Remembers the stamp of a directory that is looked into. */
export interface StampMemory {
  /** Whether nothing came into the directory or left it since a look that was noted. */
  isUnchanged(seen: DirectoryStamp): boolean;
  /**
   * Notes a look into the directory that began after its stamp was taken.
   *
   * @param before `performance.now()` before the stamp was taken
   */
  note(seen: DirectoryStamp, before: number): void;
  forget(): void;
}

/**
 * Creates the memory of a directory's stamp.
 *
 * A change within one tick of the file system's clock leaves the stamp as it was, so a look says something about the
 * next one only if the stamp was there a tick before already. That is told by looks alone: the clock of the process
 * may differ from the file system's.
 */
export function createStampMemory(): StampMemory {
  let stamp: DirectoryStamp | undefined;
  let seenSince = 0;
  let isStable = false;
  return {
    isUnchanged: (seen) => isStable && isSame(seen, stamp),
    note(seen, before) {
      if (isSame(seen, stamp)) {
        isStable ||= before - seenSince > tickOf(seen);
        return;
      }
      stamp = seen;
      seenSince = performance.now();
      isStable = false;
    },
    forget() {
      stamp = undefined;
      isStable = false;
    },
  };
}

function tickOf({ modifiedNs }: DirectoryStamp): number {
  return modifiedNs % 1_000_000_000n === 0n ? COARSE_TICK_MS : TICK_MS;
}
