import { randomUUID } from "node:crypto";
import { LanceError } from "../../../namespace/errors.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import type { Intent } from "./intent.ts";
import { hasEnded, identifyProcess, type Owner } from "./owner.ts";

/** An intent that is written down. */
export interface PendingIntent {
  /** The id of the change, which its verdict in the manifest has, too. */
  readonly id: string;
  readonly intent: Intent;
  /** Whether the note is still there: nobody has finished the change. */
  isOpen(): Promise<boolean>;
  /** Whether nobody can be at work on the change any more, so that its verdict may be forgotten. */
  isOver(): Promise<boolean>;
  /** Removes it: everything is done, or undone. */
  end(): Promise<void>;
}

/** An intent that this process carries out. */
export interface OwnIntent extends Omit<PendingIntent, "isOver"> {
  /**
   * Whether other processes leave the change to this one.
   *
   * It goes by the monotonic clock, and by renewals that were acknowledged. It saves work that would be taken back;
   * what keeps a change from being done and undone is its verdict.
   */
  isHeld(): boolean;
  /** Leaves it to be resolved later, by this process or another one. */
  abandon(): void;
  /** Leaves it to other processes alone: this one cannot tell what the disk has kept. */
  leaveToOthers(): Promise<void>;
}

/** The intents of a catalog, in files of its base directory that other implementations do not look at. */
export interface Journal {
  begin(intent: Intent): Promise<OwnIntent>;
  /** The intents that nobody is at work on: the process has ended, has let go of them, or has been silent for too long. */
  abandoned(): Promise<PendingIntent[]>;
  /** The ids of all intents. */
  ids(): Promise<ReadonlySet<string>>;
  /** Whether an intent, of whichever process, removes what is at a location. */
  removes(location: string): Promise<boolean>;
  /** The keys of files that hold no intent, and of renewals without one; they are passed over. */
  broken(): Promise<string[]>;
}

/** The directory of the intents in the base of a catalog; implementations of the public format pass over it. */
export const INTENTS_DIRECTORY = ".intents";

/** The times of leases, in milliseconds. */
export interface LeaseTimes {
  /** How often a process says that it is at work on a change. */
  readonly renewMs: number;
  /** After how much silence, by the storage's clock, another process takes over. */
  readonly leaseMs: number;
  /** How long a change may take until its commit; then its own process gives it up. */
  readonly lifeMs: number;
  /** How long the note of a refused change stays, so that what its slow owner still does is taken back. */
  readonly retainMs: number;
}

const TIMES: LeaseTimes = {
  renewMs: 10_000,
  leaseMs: 60_000,
  lifeMs: 15 * 60_000,
  retainMs: 30 * 60_000,
};

/** A note is written once and removed once, so renewals have a file of their own: they must not bring it back. */
const NOTE = ".json";
const RENEWAL = ".alive";

interface Entry {
  readonly owner: Owner;
  readonly intent: Intent;
}

const PROCESS = identifyProcess();

/** The intents that this process has left to be resolved later. */
const leftBehind = new Set<string>();

/** Opens the journal of a base directory, given by its key. */
export function createJournal(
  base: string,
  store: ObjectStore,
  clock: StorageClock,
  { renewMs, leaseMs, lifeMs, retainMs }: LeaseTimes = TIMES,
): Journal {
  const directory = keyIn(base, INTENTS_DIRECTORY);
  const noteOf = (id: string) => `${directory}/${id}${NOTE}`;
  const renewalOf = (id: string) => `${directory}/${id}${RENEWAL}`;

  async function remove(id: string): Promise<void> {
    await store.delete(noteOf(id));
    leftBehind.delete(id);
  }
  const isOpen = async (id: string) => (await store.head(noteOf(id))) !== undefined;

  /** When something was last heard of a change, in milliseconds since 1970 by the storage's clock. */
  async function lastSeen(id: string): Promise<number> {
    const infos = await Promise.all([noteOf(id), renewalOf(id)].map((key) => store.head(key)));
    return Math.max(...infos.map((info) => info?.modifiedMillis ?? 0));
  }
  async function isAbandoned(id: string, { owner }: Entry): Promise<boolean> {
    if (owner.process === PROCESS.process) return leftBehind.has(id);
    return hasEnded(owner) || (await clock.now()) - (await lastSeen(id)) > leaseMs;
  }
  function pending(id: string, { owner, intent }: Entry): PendingIntent {
    return {
      id,
      intent,
      isOpen: () => isOpen(id),
      async isOver() {
        // A bucket may still carry out what a process asked for that has ended.
        const isBounded = store.files !== undefined || intent.versions.length === 0;
        if (isBounded && (owner.process === PROCESS.process || hasEnded(owner))) return true;
        const begun = (await store.head(noteOf(id)))?.modifiedMillis ?? 0;
        return (await clock.now()) - begun > retainMs;
      },
      async end() {
        await remove(id);
        await store.delete(renewalOf(id));
      },
    };
  }
  async function idsOf(ending: string): Promise<string[]> {
    const names = await listNames(store, directory);
    return names.filter((name) => name.endsWith(ending)).map((name) => name.slice(0, -ending.length));
  }
  async function entries(): Promise<{ id: string; entry: Entry | undefined }[]> {
    const found: { id: string; entry: Entry | undefined }[] = [];
    for (const id of await idsOf(NOTE)) {
      const bytes = await store.get(noteOf(id));
      if (bytes !== undefined) found.push({ id, entry: parseEntry(bytes) });
    }
    return found;
  }

  /** Says every now and then that a change goes on; the returned function ends that. */
  function renew(id: string, onRenewed: (startedAt: number) => void): () => Promise<void> {
    let renewing: Promise<void> | undefined;
    const timer = setInterval(() => {
      const startedAt = performance.now();
      renewing ??= store
        .put(renewalOf(id), Buffer.from(""))
        .then(() => onRenewed(startedAt))
        .catch(() => {})
        .finally(() => {
          renewing = undefined;
        });
    }, renewMs).unref();
    return async () => {
      clearInterval(timer);
      await renewing;
    };
  }
  return {
    async begin(intent) {
      const id = randomUUID();
      const begun = performance.now();
      let [renewedAt, hasRenewals] = [begun, false];
      await store.put(noteOf(id), Buffer.from(JSON.stringify({ owner: PROCESS, intent })));
      const stop = renew(id, (startedAt) => {
        [renewedAt, hasRenewals] = [startedAt, true];
      });
      return {
        id,
        intent,
        isOpen: () => isOpen(id),
        isHeld() {
          const now = performance.now();
          return now - renewedAt < leaseMs && now - begun < lifeMs;
        },
        async end() {
          await stop();
          await remove(id);
          if (hasRenewals) await store.delete(renewalOf(id));
        },
        abandon() {
          void stop();
          leftBehind.add(id);
        },
        leaveToOthers: stop,
      };
    },
    async abandoned() {
      const found: PendingIntent[] = [];
      for (const { id, entry } of await entries()) {
        if (entry !== undefined && (await isAbandoned(id, entry))) found.push(pending(id, entry));
      }
      return found;
    },
    ids: async () => new Set(await idsOf(NOTE)),
    async removes(location) {
      return (await entries()).some(({ entry }) =>
        entry?.intent.departures.some((each) => each.remove && each.location === location),
      );
    },
    async broken() {
      const notes = (await entries()).filter(({ entry }) => entry === undefined);
      const known = new Set(await idsOf(NOTE));
      const renewals = (await idsOf(RENEWAL)).filter((id) => !known.has(id));
      return [...notes.map(({ id }) => noteOf(id)), ...renewals.map(renewalOf)];
    },
  };
}

/** Refuses work at a location that another change is about to remove. @throws LanceError ConcurrentModification */
export async function refuseWhileRemoved(journal: Journal, location: string): Promise<void> {
  if (!(await journal.removes(location))) return;
  throw new LanceError(
    "ConcurrentModification",
    "what is at the location is being removed by another change; try again",
  );
}

/** The entry in a file; undefined when it holds none. */
function parseEntry(bytes: Uint8Array): Entry | undefined {
  try {
    const { owner, intent } = JSON.parse(Buffer.from(bytes).toString("utf8")) as Partial<Entry>;
    return owner === undefined || !Array.isArray(intent?.versions) ? undefined : { owner, intent };
  } catch {
    return undefined;
  }
}
