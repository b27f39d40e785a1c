import { LanceError } from "../../../../namespace/errors.ts";
import { type DatasetRef, normalizeBranch } from "../../format/dataset.ts";
import { createRangeCheck, type VersionRange } from "../../format/versions/delete-versions.ts";
import { listBranches, listTags } from "../../format/versions/refs/refs.ts";
import { findVersions } from "../../format/versions/version-files.ts";

/**
 * Purpose of the locks, by the names of tables, that keep deletions of versions apart from calls that make tags or branches: both look
 * for the version first, and would not notice each other.
 */
export const REFERENCES = "references";

/**
 * Refuses to delete versions that tags name, or on which branches begin, as the cleanup of Lance does: a tag would name nothing
 * afterwards, and a table with a branch whose first version is gone is never pruned. The caller holds the lock of the table's
 * {@link REFERENCES}.
 *
 * @throws LanceError InvalidInput
 */
export async function refuseReferred(dataset: DatasetRef, ranges: readonly VersionRange[]): Promise<void> {
  const own = normalizeBranch(dataset.branch);
  const isDoomed = createRangeCheck(ranges);
  const tags = [...(await listTags(dataset))].map(([name, { branch, version }]) => ({
    version,
    branch,
    reason: `the tag ${name} names it`,
  }));
  const branches = [...(await listBranches(dataset))].map(([name, { parentBranch, parentVersion }]) => ({
    version: parentVersion,
    branch: parentBranch,
    reason: `the branch ${name} begins on it`,
  }));
  const referred = [...tags, ...branches].filter(
    ({ version, branch }) => normalizeBranch(branch) === own && isDoomed(version),
  );
  if (referred.length === 0) return;
  // Other programs may have deleted the version of a tag.
  const there = new Set((await findVersions(dataset)).map(({ version }) => version));
  const first = referred.find(({ version }) => there.has(version));
  if (first === undefined) return;
  throw new LanceError("InvalidInput", `version ${first.version} cannot be deleted: ${first.reason}`);
}
