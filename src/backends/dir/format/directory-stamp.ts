import type { DirectoryStamp } from "./storage.ts";

/**
 * Time after which a change of a directory is sure to give it a new stamp, in milliseconds. Linux records times in
 * ticks of up to 10 ms, and other systems in ticks of 100 ns to 10 ms.
 */
const TICK_MS = 100;

/**
 * Time after which a change gives a new stamp if the stamp is a whole second: some file systems record only every
 * second one.
 */
const COARSE_TICK_MS = 2100;

/**
 * Whether two stamps belong to one directory with no entries added or removed in between, provided that both were
 * stable.
 */
export function isSame(a: DirectoryStamp, b: DirectoryStamp | undefined): boolean {
  return a.identity === b?.identity && a.modifiedNs === b.modifiedNs && a.changedNs === b.changedNs;
}

/** Remembers the stamp of a directory at the last look into it. */
export interface StampMemory {
  /** Whether no entry was added to or removed from the directory since a recorded look. */
  isUnchanged(seen: DirectoryStamp): boolean;
  /**
   * Records a look into the directory that began after its stamp was taken.
   *
   * @param before `performance.now()` before the stamp was taken
   */
  note(seen: DirectoryStamp, before: number): void;
  forget(): void;
}

/**
 * Creates the memory of a directory's stamp.
 *
 * A change within a tick of the file system's clock leaves the stamp as it was. A look therefore proves something about
 * the next one only if the stamp already existed a tick earlier. Only looks can prove this, because the clock of the
 * process may differ from the file system's.
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
