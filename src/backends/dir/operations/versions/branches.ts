import { create } from "@bufbuild/protobuf";
import {
  BranchContentsSchema,
  CreateTableBranchResponseSchema,
  DeleteTableBranchResponseSchema,
  ListTableBranchesResponseSchema,
} from "../../../../gen/lance/namespace/v1/branch_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { dropVersions } from "../../batch/resolve.ts";
import type { DataContext } from "../../data/data-context.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { locateInherited } from "../../format/changes/index-entries.ts";
import { type DatasetRef, normalizeBranch } from "../../format/dataset.ts";
import { syncBranches, syncVersion } from "../../format/versions/make-durable.ts";
import {
  type Branch,
  branchNotFound,
  listBranches,
  openBranch,
  readBranch,
  registerRemains,
} from "../../format/versions/refs/refs.ts";
import { readTransaction } from "../../format/versions/transaction-records.ts";
import {
  describeVersion,
  findVersions,
  latestVersion,
  readVersion,
} from "../../format/versions/version-files.ts";
import type { PageContext, RowJobContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf, withData } from "../tables/open-data.ts";
import { REFERENCES } from "./refuse-referred.ts";
import { refuseLost, requireDataset } from "./versions.ts";

/** The operations on branches: histories that begin at a version of another branch. */
export function createBranchOperations(
  context: DataContext & PageContext & RowJobContext,
): Pick<LanceNamespace, "listTableBranches" | "createTableBranch" | "deleteTableBranch"> {
  const locks = context.createLocks(REFERENCES);
  return {
    async listTableBranches(request, call) {
      const branches = await listBranches(await requireDataset(context, call));
      if (branches.size === 0) await refuseLost(context, call);
      const { entries, ...page } = pageOfNames(context, "branches", branches, request);
      return create(ListTableBranchesResponseSchema, {
        branches: Object.fromEntries(entries.map(([name, branch]) => [name, toBranchContents(branch)])),
        ...page,
      });
    },
    async createTableBranch({ name, fromBranch, fromVersion }, call) {
      const branch = checkBranchName(name);
      if (fromVersion !== undefined && fromVersion <= 0n) {
        throw new LanceError("InvalidInput", `from_version must be positive, not ${fromVersion}`);
      }
      const table = await requireTable(context, call);
      const main = datasetOf(context, table);
      const created = { ...main, branch };
      // The engine would write the branch's files before it checks any of this.
      const make = async (native: NativeTable) => {
        if (await readBranch(main, branch)) throw branchExists(branch);
        const source = await openBranch(main, fromBranch);
        const { version } = await describeVersion(source, fromVersion);
        if (await latestVersion(created)) throw remainsOf(branch);
        try {
          await engineCall(async () => {
            const branches = await native.branches();
            (await branches.create(branch, source.branch, Number(version))).close();
          });
        } catch (error) {
          const other = await readBranch(main, branch);
          if (other === undefined) throw error;
          if (other.parentVersion !== version) await takeBeginningBack(context, created, version);
          throw branchExists(branch);
        }
        if (await removeEmpty(native, created)) {
          throw new LanceError("ConcurrentModification", "the branch was deleted while it was created");
        }
        await afterChange(async () => {
          await syncVersion(created);
          if (source.branch !== undefined) await locateInherited(source, version, created);
          await syncBranches(main);
        });
        // A version that is pruned at this moment may have lost its files. Pruning looks for branches after it has deleted
        // the manifest, so one of the two notices the other.
        await describeVersion(source, version).catch(async (error: unknown) => {
          await engineCall(async () => (await native.branches()).delete(branch));
          throw error;
        });
      };
      await locks.withLocks([joinIdentifier(call.id)], () =>
        withData(context, table, { readsNoRows: true }, make),
      );
      return create(CreateTableBranchResponseSchema);
    },
    async deleteTableBranch({ name }, call) {
      const branch = checkBranchName(name);
      const table = await requireTable(context, call);
      const main = datasetOf(context, table);
      const remove = async (native: NativeTable) => {
        const isThere = (await readBranch(main, branch)) ?? (await registerRemains(main, branch));
        if (!isThere) throw branchNotFound(branch);
        const deleted = { ...main, branch };
        const dropAll = async () => {
          if (await latestVersion(deleted)) await dropVersions(context, deleted, [{ start: 0n, end: -1n }]);
        };
        // A catalog that commits versions may refuse their deletion, and must not have any whose manifests are gone.
        if (context.store.versions !== undefined) await dropAll();
        await engineCall(async () => (await native.branches()).delete(branch));
        await afterChange(async () => {
          // The engine keeps the directory of a branch while another one, such as `b/c` of `b`, is inside of it.
          await dropAll();
          await removeEmpty(native, deleted);
          await syncBranches(main);
          // They would work on the next branch of this name.
          await context.jobs.cancelAt(table.location, (spec) => spec["branch"] === branch);
        });
      };
      await locks.withLocks([joinIdentifier(call.id)], () =>
        withData(context, table, { readsNoRows: true }, remove),
      );
      return create(DeleteTableBranchResponseSchema);
    },
  };
}

/**
 * Removes the version with which a branch would have begun, if another gateway has created the branch at another version
 * meanwhile: that version would become part of its history.
 */
async function takeBeginningBack(context: DataContext, branch: DatasetRef, version: bigint): Promise<void> {
  const found = (await findVersions(branch)).some((each) => each.version === version);
  const made = found ? await readTransaction(branch, await readVersion(branch, version)) : undefined;
  // The branch may have got a version of this number by now.
  if (made?.operation === "Clone")
    await dropVersions(context, branch, [{ start: version, end: version + 1n }]);
}

/**
 * Removes the name of a branch that has no version. The engine writes the version first, and a gateway that deletes the branch before
 * it has its name removes the version. Both look afterwards, so at least one of the two notices.
 *
 * @returns false for a branch with a version, and for a missing one
 */
async function removeEmpty(native: NativeTable, dataset: DatasetRef): Promise<boolean> {
  const { branch = "" } = dataset;
  if (!(await readBranch(dataset, branch)) || (await latestVersion(dataset))) return false;
  await engineCall(async () => (await native.branches()).delete(branch));
  return true;
}

function checkBranchName(name: string): string {
  if (name === "") throw new LanceError("InvalidInput", "branch name must not be empty");
  const branch = normalizeBranch(name);
  if (branch !== undefined) return branch;
  throw new LanceError(
    "InvalidInput",
    `Ref is invalid: ${JSON.stringify(name)} is reserved for the default branch; use a different branch name`,
  );
}

function branchExists(name: string): LanceError {
  return new LanceError("TableBranchAlreadyExists", `branch ${JSON.stringify(name)} already exists`);
}

function remainsOf(name: string): LanceError {
  return new LanceError(
    "TableBranchAlreadyExists",
    `branch ${JSON.stringify(name)} is being created, or something is left of it; delete the branch to remove that`,
  );
}

function toBranchContents({ parentBranch, parentVersion, createAt, manifestSize, metadata }: Branch) {
  return create(BranchContentsSchema, {
    parentVersion,
    createAt: BigInt(createAt),
    manifestSize: BigInt(manifestSize),
    metadata: { ...metadata },
    ...(parentBranch !== undefined && { parentBranch }),
  });
}
