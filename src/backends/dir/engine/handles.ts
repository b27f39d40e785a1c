import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LanceError } from "../../../namespace/errors.ts";
import { toEngineError } from "./errors.ts";
import type { NativeTable } from "./native.ts";
import { createSharedCheck } from "./shared-check.ts";

/** A handle that is in use; it stays open until it is released. */
export interface Lease {
  /** The table at its newest version as of the acquisition; others may move it further. */
  readonly table: NativeTable;
  release(): void;
}

/** The opened tables of an engine. */
export interface Handles {
  /**
   * Opens a table, or takes its open handle, and brings it to the newest version.
   *
   * @throws LanceError TableNotFound, when there is no data at the location.
   */
  acquire(location: string): Promise<Lease>;
  /** Closes the handle of a table that was dropped, as soon as nobody uses it. */
  forget(location: string): void;
  closeAll(): void;
}

interface Handle {
  readonly table: NativeTable;
  readonly identity: string;
  /** Moves to the newest version; false when the table is not the one that was opened. */
  readonly refresh: () => Promise<boolean>;
  users: number;
  forgotten: boolean;
}

/**
 * Keeps up to `max` handles open and closes those that were not used for the longest time.
 *
 * @param open opens the table at a location
 */
export function createHandles(max: number, open: (location: string) => Promise<NativeTable>): Handles {
  const handles = new Map<string, Promise<Handle>>();
  const settled = new Map<string, Handle>();

  function closeIfUnused(handle: Handle): void {
    if (handle.forgotten && handle.users === 0) handle.table.close();
  }
  function forget(location: string): void {
    const handle = settled.get(location);
    handles.delete(location);
    settled.delete(location);
    if (handle === undefined) return;
    handle.forgotten = true;
    closeIfUnused(handle);
  }
  function evict(): void {
    for (const [location, handle] of settled) {
      if (settled.size <= max) return;
      if (handle.users === 0) forget(location);
    }
  }
  async function openHandle(location: string): Promise<Handle> {
    const identity = await identityOf(location);
    const table = await open(location);
    const handle: Handle = {
      table,
      identity,
      refresh: createSharedCheck(async () => {
        const [same] = await Promise.all([identityOf(location), table.checkoutLatest()]);
        return same === identity;
      }),
      users: 0,
      forgotten: false,
    };
    return handle;
  }
  function find(location: string): Promise<Handle> {
    const known = handles.get(location);
    if (known !== undefined) return known;
    const opening = openHandle(location);
    handles.set(location, opening);
    opening.then(
      (handle) => {
        if (handles.get(location) !== opening) {
          handle.forgotten = true;
          closeIfUnused(handle);
          return;
        }
        settled.set(location, handle);
        evict();
      },
      () => {
        if (handles.get(location) === opening) handles.delete(location);
      },
    );
    return opening;
  }
  async function use(location: string): Promise<Lease | undefined> {
    const handle = await find(location);
    handle.users++;
    const lease = createLease(handle, closeIfUnused);
    try {
      if (await handle.refresh()) {
        if (settled.delete(location)) settled.set(location, handle);
        return lease;
      }
    } catch (error) {
      if (settled.get(location) === handle) forget(location);
      lease.release();
      throw error;
    }
    if (settled.get(location) === handle) forget(location);
    lease.release();
    return undefined;
  }
  return {
    async acquire(location) {
      try {
        // A table that was dropped and made anew elsewhere is opened again; a second change is a failure.
        const lease = (await use(location)) ?? (await use(location));
        if (lease !== undefined) return lease;
      } catch (error) {
        throw toEngineError(error);
      }
      throw new LanceError("ConcurrentModification", "the table was replaced while it was opened");
    },
    forget,
    closeAll() {
      for (const location of [...settled.keys()]) forget(location);
    },
  };
}

function createLease(handle: Handle, closeIfUnused: (handle: Handle) => void): Lease {
  let released = false;
  return {
    table: handle.table,
    release() {
      if (released) return;
      released = true;
      handle.users--;
      closeIfUnused(handle);
    },
  };
}

/**
 * Tells a table from another one that took its place. The engine would stay at the old version when the new
 * table has fewer versions, and so miss that it is another.
 */
async function identityOf(location: string): Promise<string> {
  try {
    const { ino, birthtimeNs } = await stat(join(location, "_versions"), { bigint: true });
    return `${ino}-${birthtimeNs}`;
  } catch (error) {
    throw new LanceError("TableNotFound", "the table has no data", { cause: error });
  }
}
