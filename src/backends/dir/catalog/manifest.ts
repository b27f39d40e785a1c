import { access } from "node:fs/promises";
import { join } from "node:path";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Engine } from "../engine/engine.ts";
import { engineCall } from "../engine/errors.ts";
import type { Lease } from "../engine/handles.ts";
import type { NativeTable } from "../engine/native.ts";
import type { ObjectStore } from "../format/storage.ts";
import { readVersion } from "../format/versions.ts";
import type { Row } from "./row.ts";
import type { Changes } from "./state.ts";

/** The name of the manifest table inside the base directory. */
export const MANIFEST_NAME = "__manifest";

/** The `__manifest` table as a dataset. */
export interface ManifestTable {
  /**
   * The newest version; 0 while the table does not exist.
   *
   * @throws LanceError Unsupported, when a newer writer has put the catalog out of reach.
   */
  latest(): Promise<number>;
  /** The rows of a version, in the order of the table. */
  read(version: number): Promise<Row[]>;
  /** Creates the table when it does not exist; another process may do so at the same time. */
  ensure(): Promise<void>;
  /**
   * Commits changes and returns the version; `known` are the ids that the changes replace rather than add.
   *
   * When another process commits at the same time, the engine applies the changes again on top of it: an
   * added row whose id is there already is left out, a replaced one wins, a deleted one is gone.
   *
   * @throws LanceError ConcurrentModification, when that is not possible.
   */
  commit(changes: Changes, known: ReadonlySet<string>): Promise<number>;
  /** Joins small fragments and drops old versions; returns the version afterwards. */
  compact(): Promise<number>;
  close(): void;
}

/** How long old versions stay for readers of other processes, in milliseconds. */
const KEEP_VERSIONS_MS = 10 * 60 * 1000;

/** Gives access to the manifest table of a base directory; `store` has the file system from its root. */
export function createManifestTable(base: string, engine: Engine, store: ObjectStore): ManifestTable {
  const location = join(base, MANIFEST_NAME);
  const dataset = { store, root: location.slice(1) };
  let exists = false;

  async function open(): Promise<Lease> {
    return engine.acquire(location);
  }
  async function using<T>(work: (table: NativeTable) => Promise<T>): Promise<T> {
    const lease = await open();
    try {
      return await engineCall(() => work(lease.table));
    } finally {
      lease.release();
    }
  }
  return {
    async latest() {
      if (!exists && !(await hasVersions(location))) return 0;
      try {
        const version = await using((table) => table.version());
        exists = true;
        return version;
      } catch (error) {
        if (!isLanceError(error, "TableNotFound")) throw error;
        exists = false;
        return 0;
      }
    },
    async read(version) {
      if (version === 0) return [];
      checkFlags((await readVersion(dataset, BigInt(version))).manifest, "reader");
      const { decodeRows, ROW_COLUMNS } = await import("./row-codec.ts");
      return using(async (shared) => {
        const table = await engine.atVersion(shared, version);
        try {
          const query = table.query();
          query.selectColumns(ROW_COLUMNS);
          const batches = await query.execute(65_536);
          const rows: Row[] = [];
          for (let batch = await batches.next(); batch !== null; batch = await batches.next()) {
            for (const row of decodeRows(batch)) rows.push(row);
          }
          return rows;
        } finally {
          table.close();
        }
      });
    },
    async ensure() {
      if (exists) return;
      const { encodeRows } = await import("./row-codec.ts");
      try {
        await engine.create(location, encodeRows([]), "create");
      } catch (error) {
        if (!isLanceError(error, "TableAlreadyExists")) throw error;
      }
      exists = true;
    },
    async commit(changes, known) {
      const { encodeRows } = await import("./row-codec.ts");
      const rows = [...changes.values()].filter((row) => row !== undefined);
      const gone = [...changes].filter(([, row]) => row === undefined).map(([id]) => id);
      return using(async (table) => {
        checkFlags((await readVersion(dataset, BigInt(await table.version()))).manifest, "writer");
        if (rows.length === 0) {
          return (await table.delete(isOneOf(gone))).version;
        }
        let merge = table.mergeInsert(["object_id"]).whenNotMatchedInsertAll();
        if (rows.some((row) => known.has(row.objectId))) merge = merge.whenMatchedUpdateAll();
        if (gone.length > 0) merge = merge.whenNotMatchedBySourceDelete(isOneOf(gone));
        return (await merge.execute(encodeRows(rows))).version;
      });
    },
    compact() {
      return using(async (table) => {
        await table.optimize(Date.now() - KEEP_VERSIONS_MS);
        return table.version();
      });
    },
    close() {
      engine.forget(location);
    },
  };
}

async function hasVersions(location: string): Promise<boolean> {
  try {
    await access(join(location, "_versions"));
    return true;
  } catch {
    return false;
  }
}

/** Refuses a catalog that needs a feature from a later version of the format; no feature is known yet. */
function checkFlags({ tableMetadata }: Manifest, role: "reader" | "writer"): void {
  const flags = tableMetadata[`lance.namespace.manifest.${role}_feature_flags`] ?? "0";
  if (!/^\d+$/.test(flags) || BigInt(flags) === 0n) return;
  throw new LanceError(
    "Unsupported",
    `the catalog uses features that this version cannot ${role === "reader" ? "read" : "write"} (${role} flags ${flags}); upgrade the server`,
  );
}

/** A condition for rows by their id. */
function isOneOf(objectIds: readonly string[]): string {
  return `object_id IN (${objectIds.map((id) => `'${id.replaceAll("'", "''")}'`).join(", ")})`;
}
