import { LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { ObjectStore } from "./storage.ts";

/**
 * Location of a table or of a branch.
 *
 * The names of directories and files here are those of the public format: `_versions`, `_transactions` and `_refs`
 * below the table, and each branch as a dataset of its own below `tree/<branch>`, without `_refs`.
 */
export interface DatasetRef extends DatasetPlace {
  readonly store: ObjectStore;
  /** The table in errors. Default: errors do not name it. */
  readonly table?: Identifier | undefined;
}

/** Place of a table or of a branch in a storage. */
export interface DatasetPlace {
  /** Key of the table's directory. */
  readonly root: string;
  /** Default: main. */
  readonly branch?: string | undefined;
}

/** Name of the branch that has no name in the format. */
export const MAIN_BRANCH = "main";

/** Naming scheme of manifest files: by the version, or by its distance to 2^64 − 1, so that the newest sort first. */
export type NamingScheme = "V1" | "V2";

const MAX_U64 = 0xffff_ffff_ffff_ffffn;

/** First detached version: from here on, versions have files but are not part of the history. */
export const FIRST_DETACHED_VERSION = 1n << 63n;

/** Returns the directory of the dataset: that of the table or of the branch. */
export function dataDirectory({ root, branch }: DatasetPlace): string {
  return branch === undefined ? root : `${root}/tree/${branch}`;
}

/** Returns the directory of the manifests. */
export function versionsDirectory(dataset: DatasetPlace): string {
  return `${dataDirectory(dataset)}/_versions`;
}

/** Returns the key of the version hint, which names approximately the newest version. */
export function versionHintKey(dataset: DatasetRef): string {
  return `${versionsDirectory(dataset)}/latest_version_hint.json`;
}

/** Returns the key of a transaction's file. */
export function transactionKey(dataset: DatasetRef, fileName: string): string {
  return `${dataDirectory(dataset)}/_transactions/${fileName}`;
}

/** Returns the directory of tags or branches; both belong to the table, not to a branch. */
export function refsDirectory(dataset: DatasetRef, kind: "tags" | "branches"): string {
  return `${dataset.root}/_refs/${kind}`;
}

/** Returns the name of a version's manifest file. */
export function manifestName(version: bigint, scheme: NamingScheme): string {
  const stem = scheme === "V1" ? String(version) : String(MAX_U64 - version).padStart(20, "0");
  return `${stem}.manifest`;
}

/** Returns the key of a version's manifest file. */
export function manifestKey(dataset: DatasetRef, version: bigint, scheme: NamingScheme): string {
  return `${versionsDirectory(dataset)}/${manifestName(version, scheme)}`;
}

/** Returns the object key of a manifest that a client or a catalog names, where some paths begin with a slash. */
export function keyOfManifestPath(path: string): string {
  return path.replace(/^\//, "");
}

/**
 * Parses the name of a file in `_versions`; returns `undefined` for everything except versions: staged manifests (a
 * suffix after `.manifest`), detached ones (`d<number>.manifest`), the version hint.
 */
export function parseManifestName(
  name: string,
): { readonly version: bigint; readonly scheme: NamingScheme } | undefined {
  const digits = /^(\d{1,20})\.manifest$/.exec(name)?.[1];
  if (digits === undefined) return undefined;
  const number = BigInt(digits);
  if (number > MAX_U64) return undefined;
  if (digits.length < 20) return { version: number, scheme: "V1" };
  return { version: MAX_U64 - number, scheme: "V2" };
}

/**
 * Returns the branch in the form of {@link DatasetRef}: `main`, an empty name and a missing name are the main branch.
 *
 * @throws LanceError InvalidInput for a name that the format does not allow
 */
export function normalizeBranch(name: string | undefined): string | undefined {
  if (name === undefined || name === "" || name === MAIN_BRANCH) return undefined;
  const valid =
    name.split("/").every((part) => REF_PART.test(part) && part !== ".") &&
    !name.includes("..") &&
    !name.endsWith(".lock");
  if (!valid)
    throw new LanceError("InvalidInput", `Ref is invalid: "${name}" is not a valid name of a branch`);
  return name;
}

/** @throws LanceError InvalidInput for a name that the format does not allow */
export function checkTagName(name: string): string {
  const valid = REF_PART.test(name) && !/^\.|\.$|\.\.|\.lock$/.test(name);
  if (!valid) throw new LanceError("InvalidInput", `Ref is invalid: "${name}" is not a valid name of a tag`);
  return name;
}

/** A part of a ref's name: letters and digits of any script, `.`, `-` and `_`. */
const REF_PART = /^[\p{Alphabetic}\p{N}._-]+$/u;
