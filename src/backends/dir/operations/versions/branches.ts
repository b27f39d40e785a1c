import { create } from "@bufbuild/protobuf";
import {
  BranchContentsSchema,
  CreateTableBranchResponseSchema,
  DeleteTableBranchResponseSchema,
  ListTableBranchesResponseSchema,
} from "../../../../gen/lance/namespace/v1/branch_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { engineCall } from "../../engine/errors.ts";
import { normalizeBranch } from "../../format/dataset.ts";
import {
  type Branch,
  branchNotFound,
  listBranches,
  openBranch,
  readBranch,
} from "../../format/versions/refs.ts";
import { syncBranches, syncVersion } from "../../format/versions/sync-version.ts";
import { describeVersion } from "../../format/versions/version-files.ts";
import type { PageContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { datasetOf, requireTable, withData } from "../tables/lookup.ts";
import { refuseLost, requireDataset } from "./versions.ts";

/** The operations on branches: histories that begin at a version of another branch. */
export function createBranchOperations(
  context: TableContext & PageContext,
): Pick<LanceNamespace, "listTableBranches" | "createTableBranch" | "deleteTableBranch"> {
  return {
    async listTableBranches(request, { id }) {
      const branches = await listBranches(await requireDataset(context, id));
      if (branches.size === 0) await refuseLost(context, id);
      const { entries, ...page } = pageOfNames(context, "branches", branches, request);
      return create(ListTableBranchesResponseSchema, {
        branches: Object.fromEntries(entries.map(([name, branch]) => [name, toBranchContents(branch)])),
        ...page,
      });
    },
    async createTableBranch({ name, fromBranch, fromVersion }, { id }) {
      const branch = checkBranchName(name);
      if (fromVersion !== undefined && fromVersion <= 0n) {
        throw new LanceError("InvalidInput", `from_version must be positive, not ${fromVersion}`);
      }
      const table = await requireTable(context, id);
      const main = datasetOf(context, table);
      // The engine would write the branch's files before it checks any of this.
      await withData(context, table, {}, async (native) => {
        if (await readBranch(main, branch)) throw branchExists(branch);
        const source = await openBranch(main, fromBranch);
        const { version } = await describeVersion(source, fromVersion);
        await engineCall(async () => {
          const branches = await native.branches();
          (await branches.create(branch, source.branch, Number(version))).close();
        });
        await syncVersion({ ...main, branch });
        await syncBranches(main);
        // A version that is pruned at this moment may have lost its files. Pruning looks for branches after it has deleted
        // the manifest, so one of the two notices the other.
        await describeVersion(source, version).catch(async (error: unknown) => {
          await engineCall(async () => (await native.branches()).delete(branch));
          throw error;
        });
      });
      return create(CreateTableBranchResponseSchema);
    },
    async deleteTableBranch({ name }, { id }) {
      const branch = checkBranchName(name);
      const table = await requireTable(context, id);
      await withData(context, table, {}, async (native) => {
        if (!(await readBranch(datasetOf(context, table), branch))) throw branchNotFound(branch);
        await engineCall(async () => (await native.branches()).delete(branch));
        await syncBranches(datasetOf(context, table));
      });
      return create(DeleteTableBranchResponseSchema);
    },
  };
}

function checkBranchName(name: string): string {
  if (name === "") throw new LanceError("InvalidInput", "the name of a branch must not be empty");
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

function toBranchContents({ parentBranch, parentVersion, createAt, manifestSize, metadata }: Branch) {
  return create(BranchContentsSchema, {
    parentVersion,
    createAt: BigInt(createAt),
    manifestSize: BigInt(manifestSize),
    metadata: { ...metadata },
    ...(parentBranch !== undefined && { parentBranch }),
  });
}
