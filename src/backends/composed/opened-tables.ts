import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { FoundTable } from "../dir/data/table-source.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";
import { callerOf, callOfJob, type DescribedTable, type DescribedTables } from "./described-tables.ts";
import type { JobCall } from "./jobs/storage-jobs.ts";
import type { KeptTable } from "./kept-table.ts";
import type { ComposedBackendOptions } from "./options.ts";
import type { RowStorage } from "./row-storage.ts";
import type { AcquiredStorage, RowStorages } from "./row-storages.ts";
import { createLocationCheck, vendedAccess } from "./storage-access.ts";

/** A table of a call, in an opened storage. */
export interface OpenedTable {
  readonly storage: RowStorage;
  readonly table: FoundTable;
  /**
   * Ends the use by the call.
   *
   * @param failure why the call failed. Default: it did not
   */
  release(failure?: unknown): void;
  /** Returns the error that a failure of the call means, such as the upstream's refusal of a commit. */
  explain(failure: unknown): unknown;
  /** Has the jobs of the caller on the table go on whose processes have died. */
  goOn(): Promise<void>;
}

/** Opens the tables that the upstream describes. */
export interface OpenedTables {
  /**
   * Opens the storage of a table for a call, whose operations find the table from now on.
   *
   * @param isPassing whether storage that only this call can use closes with it. Default: false
   * @throws LanceError PermissionDenied for a location that is not allowed; the errors of the storage
   */
  open(call: Call, described: DescribedTable, isPassing?: boolean): Promise<OpenedTable>;
}

/** Creates the opener of tables. */
export function createOpenedTables(
  descriptions: DescribedTables,
  storages: RowStorages,
  { allowedLocations = [], storageOptionsOf = () => ({}), environment = {} }: ComposedBackendOptions,
): OpenedTables {
  const check = createLocationCheck(allowedLocations);

  /** Whether the upstream still has a table at its location, for the caller of a call. */
  async function isStillThere(call: Call, id: Identifier, location: string): Promise<boolean> {
    try {
      return (await descriptions.describe(call, id, true)).location === location;
    } catch (error) {
      if (isLanceError(error, "TableNotFound") || isLanceError(error, "NamespaceNotFound")) return false;
      throw error;
    }
  }
  /** Returns the options with which the upstream lets the caller of a call open a table, which must still be there. */
  async function renewed(call: Call, { id, location }: Pick<DescribedTable, "id" | "location">) {
    const described = await descriptions.describe(call, id, true);
    const access = vendedAccess(described.location, described.storageOptions, environment);
    if (access !== undefined && described.location === location) return access;
    throw new LanceError("ConcurrentModification", `${joinIdentifier(id)} was replaced in the meantime`);
  }
  /** Keeps a table in use for a job, after its call. */
  function keep(
    call: Call,
    found: FoundTable,
    location: string,
    { storage, share, isOwn }: Pick<AcquiredStorage, "storage" | "share"> & { readonly isOwn: boolean },
  ): KeptTable {
    // The binding of the call ends by the identity of its table.
    const table = { ...found };
    const { id } = table;
    const own = callOfJob(call, id);
    const { renew, release } = share(isOwn ? undefined : () => renewed(own, { id, location }));
    const isThere = () => isStillThere(own, id, location);
    const unbind = storage.tables.bind(own, table, isThere);
    return {
      table,
      isThere,
      renew,
      release() {
        unbind();
        release();
      },
    };
  }
  return {
    async open(call, { id, location, properties, storageOptions: vended, isManaged }, isPassing = false) {
      const access = vendedAccess(location, vended, environment);
      const { root, key } = check({ id, location, hasCredentials: access !== undefined });
      // Credentials of the gateway go only where its own options say, and never to an address that the upstream chooses.
      const options: StorageOptions = root === "/" ? {} : (access ?? storageOptionsOf(root));
      const isOwn = root === "/" || access === undefined;
      const renew = isOwn ? undefined : () => renewed(call, { id, location });
      const managed = isManaged ? { id, call } : undefined;
      const { storage, release, share } = await storages
        .acquire({ root, key, options, isOwn, caller: callerOf(call), renew, managed, isPassing })
        .catch((error: unknown) => {
          if (error instanceof LanceError) throw error;
          throw new LanceError(
            "ServiceUnavailable",
            `the storage of ${joinIdentifier(id)} cannot be opened`,
            {
              cause: error,
            },
          );
        });
      const { store } = storage.context;
      const table: FoundTable = { id, location: key, path: store.uriOf(key), properties, listed: true };
      const unbind = storage.tables.bind(call, table, () => isStillThere(call, id, location));
      const by: JobCall = { call, table, keep: () => keep(call, table, location, { storage, share, isOwn }) };
      const unbindJobs = storage.jobs.bind(by);
      const end = (failure?: unknown) => {
        unbindJobs();
        unbind();
        release(failure !== undefined && mayBeOfCredentials(failure));
      };
      try {
        // Staged rows and locks are written there before any data of the table.
        await storage.tables.checkNoEscape(table);
      } catch (error) {
        end(error);
        throw error;
      }
      const explain = (failure: unknown) => storage.versions?.refusalIn(failure) ?? failure;
      return { storage, table, release: end, explain, goOn: () => storage.jobs.goOn(by) };
    },
  };
}

/** Runs work on a table of a call, and ends the use of the table. */
export async function using<T>(
  table: Pick<OpenedTable, "release" | "explain">,
  work: () => Promise<T>,
): Promise<T> {
  let failure: unknown;
  try {
    return await work();
  } catch (error) {
    failure = table.explain(error);
    throw failure;
  } finally {
    table.release(failure);
  }
}

/** Kinds of errors by which a storage may say that it refuses credentials, for the gateway's library and for the engine. */
const OF_CREDENTIALS = ["ServiceUnavailable", "PermissionDenied", "Internal", "OutcomeUnknown"] as const;

function mayBeOfCredentials(failure: unknown): boolean {
  return !(failure instanceof LanceError) || OF_CREDENTIALS.some((kind) => isLanceError(failure, kind));
}
