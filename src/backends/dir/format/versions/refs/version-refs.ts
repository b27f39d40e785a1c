import type { DatasetRef } from "../../dataset.ts";
import { normalizeBranch, refsDirectory } from "../../dataset.ts";
import { listNames } from "../../storage.ts";
import { listBranches, listTags } from "./refs.ts";

/** The versions of the dataset's own history to which tags and branches refer. */
export interface Refs {
  readonly versions: ReadonlySet<bigint>;
  /** Versions on which branches begin. */
  readonly branchPoints: ReadonlySet<bigint>;
  /** Distinguishes the refs from others. */
  readonly text: string;
}

/** Reads the tags and branches of a table. */
export async function readRefs(dataset: DatasetRef): Promise<Refs> {
  const own = normalizeBranch(dataset.branch);
  const [tags, branches] = [await listTags(dataset), await listBranches(dataset)];
  const tagged = [...tags.values()].filter(({ branch }) => normalizeBranch(branch) === own);
  const children = [...branches.values()].filter(({ parentBranch }) => normalizeBranch(parentBranch) === own);
  const branchPoints = new Set(children.map(({ parentVersion }) => parentVersion));
  const names = [...tags].map(([name, { branch, version }]) => [name, branch, String(version)]);
  return {
    versions: new Set([...tagged.map(({ version }) => version), ...branchPoints]),
    branchPoints,
    text: JSON.stringify([names, [...branches.keys()]]),
  };
}

/** Whether a table has tags or branches, which refer to versions. */
export async function hasRefs(dataset: DatasetRef): Promise<boolean> {
  for (const kind of ["tags", "branches"] as const) {
    if ((await listNames(dataset.store, refsDirectory(dataset, kind))).length > 0) return true;
  }
  return false;
}
