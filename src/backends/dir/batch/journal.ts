import { createHash, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { ObjectStore } from "../format/storage.ts";
import { keyIn, listNames } from "../format/storage.ts";

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
  /** Locations that lose their row. Default: none. */
  readonly departures?: readonly Departure[];
}

/** A location that loses its row. */
export interface Departure {
  readonly location: string;
  /** Whether its directory goes too, once no row has it. */
  readonly remove: boolean;
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
  /** The name of its file in {@link INTENTS_DIRECTORY}. */
  readonly name: string;
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
  /** The keys of files that hold no intent; they are passed over. */
  broken(): Promise<string[]>;
}

/** The directory of the intents in the base of a catalog; implementations of the public format pass over it. */
export const INTENTS_DIRECTORY = ".intents";

interface Entry {
  readonly owner: { readonly host: string; readonly pid: number; readonly process?: string };
  readonly intent: Intent;
}

/** Tells this process from others, also from one that had its number before it. */
const PROCESS = randomUUID();

/** The intents that this process has left to be settled later. */
const leftBehind = new Set<string>();

/** How old the intent of another machine's process has to be before it counts as abandoned, in milliseconds. */
const FOREIGN_LEASE = 60_000;

/** Opens the journal of a base directory, given by its key. */
export function createJournal(base: string, store: ObjectStore): Journal {
  const directory = keyIn(base, INTENTS_DIRECTORY);

  function pending(name: string, intent: Intent): PendingIntent {
    return {
      name,
      intent,
      async end() {
        await store.delete(`${directory}/${name}`);
        leftBehind.delete(name);
      },
      abandon() {
        leftBehind.add(name);
      },
    };
  }
  async function isAbandoned(name: string, { owner }: Entry): Promise<boolean> {
    if (owner.process === PROCESS) return leftBehind.has(name);
    if (owner.host === hostname()) return owner.pid === process.pid || !isRunning(owner.pid);
    const info = await store.head(`${directory}/${name}`);
    return info !== undefined && Date.now() - info.modifiedMillis > FOREIGN_LEASE;
  }
  async function entries(): Promise<{ name: string; entry: Entry | undefined }[]> {
    const found: { name: string; entry: Entry | undefined }[] = [];
    for (const name of (await listNames(store, directory)).filter((each) => each.endsWith(".json"))) {
      const bytes = await store.get(`${directory}/${name}`);
      if (bytes !== undefined) found.push({ name, entry: parseEntry(bytes) });
    }
    return found;
  }
  return {
    async begin(intent) {
      const name = `${randomUUID()}.json`;
      const entry: Entry = { owner: { host: hostname(), pid: process.pid, process: PROCESS }, intent };
      await store.put(`${directory}/${name}`, Buffer.from(JSON.stringify(entry)));
      return pending(name, intent);
    },
    async abandoned() {
      const found: PendingIntent[] = [];
      for (const { name, entry } of await entries()) {
        if (entry !== undefined && (await isAbandoned(name, entry))) found.push(pending(name, entry.intent));
      }
      return found;
    },
    async broken() {
      const broken = (await entries()).filter(({ entry }) => entry === undefined);
      return broken.map(({ name }) => `${directory}/${name}`);
    },
  };
}

/** The entry in a file; undefined when it holds none, as after a power failure. */
function parseEntry(bytes: Uint8Array): Entry | undefined {
  try {
    const { owner, intent } = JSON.parse(Buffer.from(bytes).toString("utf8")) as Partial<Entry>;
    return owner === undefined || !Array.isArray(intent?.versions) ? undefined : { owner, intent };
  } catch {
    return undefined;
  }
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
