import type { Logger } from "pino";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { type ErrorName, LanceError } from "../../../namespace/errors.ts";
import type { SharedCounter } from "../../../runtime/threads/sharing.ts";
import type { ManifestTable } from "./manifest/manifest-table.ts";
import type { Head } from "./manifest/newest-version.ts";
import type { Sharing } from "./sharing.ts";
import type { RowAddress } from "./state/rows/stored-row.ts";
import { type CatalogState, createState } from "./state/state.ts";
import { type Changes, factsOf } from "./state/view.ts";

/** The version of a catalog that this thread has in memory, and its state. */
export interface HeldVersion {
  /** 0 while there is none. */
  readonly version: number;
  /** As in {@link Head}: the version's number means something only in this generation. */
  readonly generation: number;
  readonly state: CatalogState;
  /** Whether the state is that of the version. */
  readonly isSound: boolean;
  /** Whether the newest version in the storage is this one. */
  isNewest(head: Head): boolean;
  /** Reads the newest version: what it has changed or, if that cannot be known, the whole of it. */
  load(head: Head): Promise<void>;
  /** Applies a version that follows this one. */
  advance(
    version: number,
    changes: Changes,
    addresses: ReadonlyMap<string, RowAddress>,
    manifest: Manifest,
  ): void;
  /** Takes over the state of the same version in other memory. */
  replace(state: CatalogState): void;
  /** Notes that the state is not that of the version, which has to be read again. */
  distrust(): void;
}

/** A catalog as its version in memory uses it. */
export interface HeldVersionOptions {
  readonly manifest: Pick<ManifestTable, "changes" | "isOther">;
  readonly sharing: Pick<Sharing, "newMemory" | "read">;
  /** Newest version that a worker of the process has seen. Default: there is a single worker. */
  readonly newestSeen: SharedCounter | undefined;
  /** Called when a load has changed the state. */
  readonly onLoad: () => void;
  readonly log: Logger;
}

/** The warning when the known versions are gone and others have their numbers. */
const REPLACED =
  "the catalog was replaced by another one, as after a restore from a backup, and is read again";

/** Begins without a version. */
export function createHeldVersion(options: HeldVersionOptions): HeldVersion {
  const { manifest, sharing, newestSeen, onLoad, log } = options;
  let state = createState([], sharing.newMemory());
  let version = 0;
  let generation = 0;
  let isSound = true;
  let loadsStarted = 0;
  let newestLoad = 0;

  return {
    get version() {
      return version;
    },
    get generation() {
      return generation;
    },
    get state() {
      return state;
    },
    get isSound() {
      return isSound;
    },
    isNewest: (head) => isSound && head.version === version && head.generation === generation,
    async load({ version: target, generation: targetGeneration }) {
      const started = ++loadsStarted;
      const from = version;
      const isOther =
        from > 0 &&
        targetGeneration !== generation &&
        (await manifest.isOther(from, state.facts.transaction));
      const delta =
        isSound && !isOther && from > 0 && from < target && state.isMergeable
          ? await manifest.changes(from, target)
          : undefined;
      const whole = delta === undefined ? await sharing.read(target, isSound) : undefined;
      // A load that started later has seen at least as much.
      if (started < newestLoad) return;
      newestLoad = started;
      if (whole !== undefined) [state, isSound] = [whole.state, true];
      else if (delta !== undefined && version === from) {
        state.merge(delta);
        state.facts = delta.facts;
      } else return;
      version = whole?.version ?? target;
      generation = targetGeneration;
      newestSeen?.raise(version);
      onLoad();
      if (isOther) log.warn({ version, known: from }, REPLACED);
      if (whole !== undefined && state.duplicates > 0)
        log.warn({ version }, "the manifest has duplicate rows");
    },
    advance(next, changes, addresses, file) {
      state.apply(changes, addresses);
      state.facts = factsOf(file);
      version = next;
    },
    replace(other) {
      state = other;
    },
    distrust() {
      isSound = false;
    },
  };
}

/** Failures to read a catalog whose cause is the storage or this software, not the catalog. */
const NO_DAMAGE: readonly ErrorName[] = ["Unsupported", "ServiceUnavailable", "Throttling"];

/** Distinguishes a damaged or missing catalog from a readable one. */
interface Integrity {
  /**
   * Checks the number of the newest version, and reads what is new.
   *
   * @param seen the newest version that this process has read or written before
   * @throws LanceError ServiceUnavailable if the number is smaller, or if the catalog cannot be read
   */
  guard(found: number, seen: number, read: () => Promise<void>): Promise<void>;
  /** Whether the last check found damage. */
  isDamaged(): boolean;
}

/**
 * Creates the guard of a catalog. Versions that were seen do not disappear by themselves: an operator has removed or
 * restored something, or a volume is not mounted. Until they are back, the catalog answers nothing and, above all,
 * creates no new manifest. An operator who accepts the current state restarts the server. The log gets a single error,
 * and a single line when the catalog is back.
 */
export function createIntegrity(log: Logger): Integrity {
  let isDamaged = false;

  function damage(details: object, message: string, cause?: unknown): LanceError {
    if (!isDamaged) log.error({ ...details, err: cause }, `${message}; nothing is served until it is back`);
    isDamaged = true;
    return new LanceError("ServiceUnavailable", message, { cause });
  }
  return {
    isDamaged: () => isDamaged,
    async guard(found, seen, read) {
      if (found < seen)
        throw damage({ found, seen }, "the catalog has lost versions that the server has seen");
      try {
        await read();
      } catch (error) {
        if (error instanceof LanceError && NO_DAMAGE.includes(error.kind)) throw error;
        throw damage({ version: found }, "the catalog cannot be read", error);
      }
      if (isDamaged) log.info({ version: found }, "the catalog is back");
      isDamaged = false;
    },
  };
}
