import { hash } from "node:crypto";
import type { Call } from "../../namespace/call/call.ts";
import { EXPIRY_OPTION, expiryOf } from "../../namespace/credential-options.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { SECRET_NAME } from "../../runtime/text.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";
import type { CredentialsLeft } from "./kept-table.ts";
import { createRenewedOptions, lifeOf, type RenewedOptions } from "./renewed-options.ts";
import type { RowStorage, StorageAccess } from "./row-storage.ts";
import type { UpstreamVersions } from "./versions/upstream-versions.ts";

/** Place of a table, and what opens it. */
export interface WantedStorage extends Omit<StorageAccess, "versions"> {
  /** Key of the table's directory. */
  readonly key: string;
  /** Text that is equal for the same caller alone. */
  readonly caller: string;
  /** Returns newer options, as the caller of the call. Default: there are none */
  readonly renew?: (() => Promise<StorageOptions>) | undefined;
  /** The table, if the upstream commits its versions, and the call that uses it. Default: the storage has the versions */
  readonly managed?: { readonly id: Identifier; readonly call: Call } | undefined;
  /**
   * Whether a storage that belongs to one caller closes with its last use, instead of taking the place of one that calls use again.
   * Default: false.
   */
  readonly isPassing?: boolean | undefined;
}

/** An opened storage in use by a call. */
export interface AcquiredStorage {
  readonly storage: RowStorage;
  /**
   * Ends the use.
   *
   * @param isDoubtful whether the storage may have refused its credentials, so that later calls get those of their own descriptions. Default:
   *   false
   */
  release(isDoubtful?: boolean): void;
  /**
   * Uses the same storage for longer than the call does. The call, or another use, must not have ended.
   *
   * @param renew returns newer options, as the caller of the call. Default: there are none
   */
  share(renew?: () => Promise<StorageOptions>): SharedStorage;
}

/** A use of an opened storage that goes on after its call. */
export interface SharedStorage {
  /** Renews the credentials if it is time. Returns what is left of them; undefined if they do not expire. */
  renew(): Promise<CredentialsLeft | undefined>;
  release(): void;
}

/** Storages that are open, each for those whose credentials open it. */
export interface RowStorages {
  /** Takes an opened storage, or opens it; the caller releases it. */
  acquire(wanted: WantedStorage): Promise<AcquiredStorage>;
  close(): Promise<void>;
}

interface Entry {
  readonly opening: Promise<RowStorage>;
  users: number;
  lastUsed: number;
  /** Whether its credentials expire. */
  readonly expires: boolean;
  /** Options whose credentials are renewed while it is open. Default: the storage keeps those with which it was opened. */
  readonly renewed: RenewedOptions | undefined;
  /** Versions that the upstream commits. Default: the storage has them. */
  readonly versions: UpstreamVersions | undefined;
  /** When it is not given to new calls any more, in epoch milliseconds. */
  readonly until: number;
  /** Remaining life of credentials that cannot be renewed. Default: they do not expire, or can be renewed. */
  readonly left: CredentialsLeft | undefined;
  isGone: boolean;
}

/** Maximum number of unused storages that stay open. */
const MAX_STORAGES = 64;

/** Storages that take newer credentials while they are open. */
const RENEWABLE = /^s3:/;

/**
 * Creates the open storages of a backend.
 *
 * @param versionsOf returns the versions that the upstream commits of a table, by its name and the key of its directory
 */
export function createRowStorages(
  open: (access: StorageAccess) => Promise<RowStorage>,
  idleMs: number,
  versionsOf: (id: Identifier, key: string) => UpstreamVersions,
): RowStorages {
  const entries = new Map<string, Entry>();
  let isClosed = false;
  const closing = new Set<Promise<unknown>>();

  function drop(key: string, entry: Entry): void {
    if (entries.get(key) === entry) entries.delete(key);
    entry.isGone = true;
    closeIfUnused(entry);
  }
  function closeIfUnused(entry: Entry): void {
    if (!entry.isGone || entry.users > 0) return;
    const done: Promise<unknown> = entry.opening
      .then((storage) => storage.close())
      .catch(() => {})
      .finally(() => closing.delete(done));
    closing.add(done);
  }
  function tidy(): void {
    const before = performance.now() - idleMs;
    for (const [key, entry] of entries)
      if (entry.users === 0 && (entry.lastUsed < before || entries.size > MAX_STORAGES)) drop(key, entry);
  }
  const timer = setInterval(tidy, Math.max(1_000, idleMs / 4)).unref();

  function begin(key: string, wanted: WantedStorage): Entry {
    const { root, options, isOwn, managed } = wanted;
    const versions = managed && versionsOf(managed.id, wanted.key);
    const expires = expiryOf(options) !== undefined;
    const renewed = expires && RENEWABLE.test(root) ? createRenewedOptions(options) : undefined;
    const life = expires && renewed === undefined ? lifeOf(options) : undefined;
    const until = life?.renewAt ?? Number.POSITIVE_INFINITY;
    const failure = "a storage of this kind takes no newer credentials while it is open";
    const left = life && { ends: life.ends, life: life.ends - Date.now(), failure };
    const opening = open({ root, options, isOwn, renew: renewed?.current, versions });
    const lastUsed = performance.now();
    const shared = { users: 0, lastUsed, isGone: false };
    const entry: Entry = { opening, ...shared, expires, renewed, versions, until, left };
    opening.catch(() => drop(key, entry));
    entries.set(key, entry);
    return entry;
  }
  return {
    async acquire(wanted) {
      if (isClosed) throw new Error("the storages are closed");
      const key = keyOf(wanted);
      let entry = entries.get(key);
      if (entry !== undefined && entry.until <= Date.now()) {
        drop(key, entry);
        entry = undefined;
      }
      if (entry === undefined) {
        if (entries.size >= MAX_STORAGES) tidy();
        entry = begin(key, wanted);
      }
      const taken = entry;
      taken.users += 1;
      // The least recently used one is the first.
      if (entries.get(key) === taken) {
        entries.delete(key);
        entries.set(key, taken);
      }
      taken.renewed?.offer(wanted.options);
      const { managed } = wanted;
      const endSource = wanted.renew && taken.renewed?.addSource(wanted.renew);
      const endCaller = managed && taken.versions?.addSource(managed.call);
      const leave = () => {
        taken.users -= 1;
        taken.lastUsed = performance.now();
        closeIfUnused(taken);
      };
      const release = (isDoubtful = false) => {
        endSource?.();
        endCaller?.();
        if (isDoubtful && taken.expires) drop(key, taken);
        leave();
        const isOfCaller = taken.expires || taken.versions !== undefined;
        if (wanted.isPassing === true && isOfCaller && taken.users === 0) drop(key, taken);
      };
      const share = (renew?: () => Promise<StorageOptions>): SharedStorage => {
        taken.users += 1;
        const endShared = renew && taken.renewed?.addSource(renew);
        const endSharedCaller = managed && taken.versions?.addSource(managed.call);
        return {
          async renew() {
            if (taken.renewed === undefined) return taken.left;
            await taken.renewed.current();
            return taken.renewed.left();
          },
          release() {
            endShared?.();
            endSharedCaller?.();
            leave();
          },
        };
      };
      try {
        return { storage: await taken.opening, release, share };
      } catch (error) {
        release();
        throw error;
      }
    },
    async close() {
      isClosed = true;
      clearInterval(timer);
      for (const [key, entry] of [...entries]) drop(key, entry);
      await Promise.all(closing);
    },
  };
}

/**
 * Returns a text that is equal for the same storage and the same credentials. Credentials that expire are others for each description, so a
 * caller keeps those with which its table was opened until they are renewed. The upstream commits versions for each caller.
 */
function keyOf({ root, key, options, isOwn, caller, managed }: WantedStorage): string {
  const expires = expiryOf(options) !== undefined;
  const names = Object.entries(options).filter(
    ([name]) => !expires || !(SECRET_NAME.test(name) || name === EXPIRY_OPTION),
  );
  const own = expires || managed !== undefined ? [caller, key, managed?.id] : [];
  return hash("sha256", JSON.stringify([root, isOwn, own, names.sort()]), "base64");
}
