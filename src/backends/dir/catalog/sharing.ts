import { inSlices } from "../../../runtime/pace.ts";
import { createSharedCheck } from "../../../runtime/promises.ts";
import type { SharedCounter, SharedDatabase } from "../../../runtime/threads/sharing.ts";
import type { Staleness } from "../concurrency/shared-checks.ts";
import type { TakeTurn } from "./commits/commit-group.ts";
import type { SharedVersion } from "./exchange/messages.ts";
import type { ManifestTable } from "./manifest/manifest-table.ts";
import { createMemory, type Memory } from "./state/memory.ts";
import type { PropertyLimits } from "./state/properties-size.ts";
import { type CatalogState, openState } from "./state/state.ts";
import { factsOf } from "./state/view.ts";

/** A version in memory. */
export interface Held {
  readonly version: number;
  readonly state: CatalogState;
}

/** A catalog as its sharing uses it. */
export interface SharingOptions {
  readonly manifest: Pick<ManifestTable, "read" | "manifestOf">;
  /** Whether other workers read the memory of this one. */
  readonly isFirst: boolean;
  /** Returns the version in memory; undefined while that is in doubt. */
  readonly held: () => Held | undefined;
  /** Brings the version in memory up to date. */
  readonly refresh: () => Promise<void>;
  /** Asks the first worker for its newest version; undefined if that is impossible. */
  readonly ask: () => Promise<SharedVersion | undefined>;
}

/** The part of a catalog that shares the memory of versions with the process's other workers (docs/adr/0016). */
export interface Sharing {
  newMemory(): Memory;
  /**
   * Reads a version, unless the first worker has it, or a newer one, in memory.
   *
   * @param mayShare whether the memory of that worker may be taken over
   */
  read(version: number, mayShare: boolean): Promise<Held>;
  /** Returns the newest version for other workers; undefined if they could not recognise it. */
  share(): Promise<SharedVersion | undefined>;
  /** Returns the state in memory as it is in another worker; undefined if that has another version. */
  sameIn(shared: SharedVersion): CatalogState | undefined;
}

/** Creates the sharing of a catalog. */
export function createSharing({ manifest, isFirst, held, refresh, ask }: SharingOptions): Sharing {
  const newMemory = () => createMemory(isFirst);

  /** Whether a version of another worker is the one that is stored under its number. */
  async function isStored({ version, state: { facts } }: SharedVersion): Promise<boolean> {
    const stored = await manifest.manifestOf(version);
    return stored !== undefined && factsOf(stored).transaction === facts.transaction;
  }
  return {
    newMemory,
    async read(version, mayShare) {
      const shared = mayShare ? await ask() : undefined;
      if (shared !== undefined && shared.version >= version && (await isStored(shared)))
        return { version: shared.version, state: openState(shared.state) };
      return { version, state: await manifest.read(version, newMemory()) };
    },
    share: createSharedCheck(async () => {
      await refresh();
      for (;;) {
        const prepared = held();
        if (prepared === undefined || prepared.state.facts.transaction === "") return undefined;
        await inSlices(prepared.state.prepareToShare());
        const now = held();
        if (now?.state === prepared.state) return { version: now.version, state: now.state.share() };
      }
    }),
    sameIn({ version, state }) {
      const own = held();
      const isSame = version === own?.version && state.facts.transaction === own.state.facts.transaction;
      return isSame ? openState(state) : undefined;
    },
  };
}

/** Options of a catalog. */
export interface CatalogOptions {
  /** How old the state of reads may be. Default: it is the newest. */
  readonly staleness?: Staleness | undefined;
  /** Maximum number of mutations that wait for a commit. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
  /** Bounds of properties. Default: {@link PROPERTY_LIMITS}. */
  readonly properties?: PropertyLimits | undefined;
  /** Maximum number of retries of a commit after another process won. Default: 20. */
  readonly maxRetries?: number | undefined;
  /** Whether the manifest is compacted and pruned in the background. Default: true. */
  readonly maintenance?: boolean | undefined;
  /** Newest version that a worker of the process has committed or read. Default: there is a single worker. */
  readonly newestSeen?: SharedCounter | undefined;
  /** Lets the workers of the process commit one after the other. Default: there is a single worker. */
  readonly inTurn?: TakeTurn | undefined;
  /** The other workers of the process, with which it commits in groups. Default: there is a single worker. */
  readonly workers?: Pick<SharedDatabase, "isFirst" | "commitPorts"> | undefined;
}
