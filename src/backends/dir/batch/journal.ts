import { createHash, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { ObjectStore } from "../format/storage.ts";
import { listNames } from "../format/storage.ts";

/**
 * What a change of several files is about to do, so that it can be completed or undone after a crash.
 *
 * Everything in it is decided: numbers of versions, not ranges that are open. It is JSON.
 */
export interface Intent {
  /** Manifests that become versions. */
  readonly versions: readonly IntendedVersion[];
  /** Rows of the catalog as one commit leaves them; a location of null is a row that goes away. */
  readonly rows: readonly { readonly objectId: string; readonly location: string | null }[];
  /** Versions whose manifests are deleted after everything else. */
  readonly deletions: readonly {
    readonly dataset: IntendedDataset;
    readonly ranges: readonly { readonly start: string; readonly end: string }[];
  }[];
  /** Locations whose marker files have to follow the catalog. */
  readonly locations: readonly string[];
}

/** A dataset, by its place in the storage. */
export interface IntendedDataset {
  readonly root: string;
  readonly branch: string | null;
}

/** A manifest that becomes a version. */
export interface IntendedVersion {
  readonly dataset: IntendedDataset;
  readonly version: string;
  readonly key: string;
  readonly stagedKey: string;
  /** {@link digestOf} its bytes, which tells it from a version that somebody else commits under the number. */
  readonly digest: string;
  /** Whether it was a version before: then it is not taken back. */
  readonly exists: boolean;
}

/** An intent that is written down. */
export interface PendingIntent {
  readonly intent: Intent;
  /** Removes it: everything is done, or undone. */
  end(): Promise<void>;
  /** Leaves it to be settled later. */
  abandon(): void;
}

/** The intents of a catalog, in files of its base directory that other implementations do not look at. */
export interface Journal {
  begin(intent: Intent): Promise<PendingIntent>;
  /** The intents whose process has ended, or is on another machine and has been silent for a minute. */
  abandoned(): Promise<PendingIntent[]>;
}

interface Entry {
  readonly owner: { readonly host: string; readonly pid: number };
  readonly intent: Intent;
}

/** The intents that this process is at work on. */
const underWay = new Set<string>();

/** How old the intent of another machine's process has to be before it counts as abandoned, in milliseconds. */
const FOREIGN_LEASE = 60_000;

/** Opens the journal of a base directory. */
export function createJournal(base: string, store: ObjectStore): Journal {
  const directory = `${base.slice(1)}/.intents`;

  function pending(name: string, intent: Intent): PendingIntent {
    return {
      intent,
      async end() {
        await store.delete(`${directory}/${name}`);
        underWay.delete(name);
      },
      abandon() {
        underWay.delete(name);
      },
    };
  }
  async function isAbandoned(name: string, { owner }: Entry): Promise<boolean> {
    if (underWay.has(name)) return false;
    if (owner.host === hostname()) return owner.pid === process.pid || !isRunning(owner.pid);
    const info = await store.head(`${directory}/${name}`);
    return info !== undefined && Date.now() - info.modifiedMillis > FOREIGN_LEASE;
  }
  return {
    async begin(intent) {
      const name = `${randomUUID()}.json`;
      const entry: Entry = { owner: { host: hostname(), pid: process.pid }, intent };
      underWay.add(name);
      await store.put(`${directory}/${name}`, Buffer.from(JSON.stringify(entry)));
      return pending(name, intent);
    },
    async abandoned() {
      const names = (await listNames(store, directory)).filter((name) => name.endsWith(".json"));
      const found: PendingIntent[] = [];
      for (const name of names) {
        const bytes = await store.get(`${directory}/${name}`);
        if (bytes === undefined) continue;
        const entry = JSON.parse(Buffer.from(bytes).toString("utf8")) as Entry;
        if (await isAbandoned(name, entry)) found.push(pending(name, entry.intent));
      }
      return found;
    },
  };
}

/** What a manifest is recognized by. */
export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
