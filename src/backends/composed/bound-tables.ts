import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier, sameIdentifier } from "../../namespace/identifier.ts";
import type { FoundTable, TableSource } from "../dir/data/table-source.ts";
import { foreignBasePaths } from "../dir/format/files/base-paths.ts";
import type { ObjectStore } from "../dir/format/storage.ts";
import { latestVersion, readVersion } from "../dir/format/versions/version-files.ts";

/** Mark by which implementations that list directories see that a directory is not a table. */
const DEREGISTERED = ".lance-deregistered";

/** The tables of the calls that a storage serves: each call sees the one that the upstream has described to it. */
export interface BoundTables extends TableSource {
  /**
   * Makes a table that of a call.
   *
   * @param isOwned whether the upstream still has the table there, for the caller
   * @returns ends the binding
   */
  bind(call: Pick<Call, "id">, table: FoundTable, isOwned: () => Promise<boolean>): () => void;
}

/**
 * Creates the tables of a storage.
 *
 * @param checkBase checks a directory outside of a table whose files a version of the table names. Default: the credentials of the storage
 *   decide
 */
export function createBoundTables(
  store: ObjectStore,
  checkBase?: (id: Identifier, location: string) => Promise<void>,
): BoundTables {
  /** The versions that have been checked last, by handles. */
  const passed = new WeakMap<object, number>();
  const ofCalls = new WeakMap<object, FoundTable>();
  const owned = new WeakMap<FoundTable, () => Promise<boolean>>();
  /** The tables of the calls that run, by their locations. */
  const inUse = new Map<string, FoundTable[]>();

  async function checkNoEscape({ id, location }: FoundTable): Promise<void> {
    if (!(await store.files?.leadsThroughLink(location))) return;
    const name = JSON.stringify(joinIdentifier(id));
    throw new LanceError("PermissionDenied", `the location of ${name} leads through a symbolic link`);
  }
  const isOwned: TableSource["isOwned"] = async (table) => (await owned.get(table)?.()) ?? true;
  return {
    bind(call, table, check) {
      ofCalls.set(call, table);
      owned.set(table, check);
      const others = inUse.get(table.location) ?? [];
      inUse.set(table.location, [...others, table]);
      return () => {
        const left = (inUse.get(table.location) ?? []).filter((each) => each !== table);
        if (left.length === 0) inUse.delete(table.location);
        else inUse.set(table.location, left);
      };
    },
    async find(call, id) {
      const table = ofCalls.get(call);
      return table !== undefined && sameIdentifier(table.id, id) ? table : undefined;
    },
    isOwned,
    async hideRemains({ location }) {
      await store.put(`${location}/${DEREGISTERED}`, new Uint8Array());
    },
    async confirmWritten(table) {
      if (await isOwned(table)) return;
      // The table may as well have been dropped as be there: an upstream may answer from before its last change.
      throw new LanceError(
        "OutcomeUnknown",
        "the upstream catalog does not have the table any more, to which rows were written; look before you repeat it",
      );
    },
    async duringWork({ id, location }, work) {
      const table = (inUse.get(location) ?? []).find((each) => sameIdentifier(each.id, id));
      if (table === undefined) throw new LanceError("TableNotFound", "the call of this work has ended");
      return work(table);
    },
    async dataState(table) {
      await checkNoEscape(table);
      const dataset = { store, root: table.location, branch: undefined, table: table.id };
      return (await latestVersion(dataset)) === undefined ? "declared" : "written";
    },
    checkNoEscape,
    ...(checkBase !== undefined && {
      async checkVersion(dataset, native) {
        // Another call may move the handle meanwhile.
        for (let at = await native.version(); passed.get(native) !== at; at = await native.version()) {
          const { manifest } = await readVersion(dataset, BigInt(at));
          for (const path of foreignBasePaths(dataset, manifest)) await checkBase(dataset.table ?? [], path);
          passed.set(native, at);
        }
      },
    }),
    // Credentials of an upstream open the directory of the table alone.
    stagingBaseOf(table) {
      if (table === undefined) throw new Error("rows are staged for a table that the upstream has");
      return table.location;
    },
    properties: {
      maxBytes: 64 * 1024,
      async checkAdded() {
        throw new LanceError(
          "Unsupported",
          "properties of tables belong to the upstream catalog, which has no operation to change them with rows",
        );
      },
      add: async ({ properties }) => ({ ...properties }),
    },
  };
}
