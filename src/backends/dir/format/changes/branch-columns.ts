import { create } from "@bufbuild/protobuf";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import type { DataFile, DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_MergeSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { columnFacts, copyMessage, countRows } from "../files/manifest.ts";
import type { Change } from "./next-version.ts";

/** The versions that tell what has become of a branch and of the branch that it came from. */
export interface BranchVersions {
  /** The version from which the branch came. */
  readonly parent: Manifest;
  /** The newest version of the branch from which it came. */
  readonly main: Manifest;
  /** The newest version of the branch. */
  readonly branch: Manifest;
}

/** A column with the fields in it. */
export interface Column {
  readonly field: Field;
  /** The column and everything inside, parents first. */
  readonly fields: readonly Field[];
}

/** Differences of a branch to the branch from which it came. */
export interface BranchChanges {
  readonly added: readonly Column[];
  readonly removed: readonly Column[];
  readonly changed: readonly { readonly main: Column; readonly branch: Column }[];
  /** Rows in fragments that both have with a common file and equal deletions, and in all others. */
  readonly rows: { readonly unchanged: bigint; readonly onMain: bigint; readonly onBranch: bigint };
  /** Whether rows, values or columns of the parent have changed since. */
  readonly baseMoved: boolean;
  /** Change of the rows with which the branch began. Files are compared in place of values. */
  readonly rowChange: "none" | "count" | "values";
}

/** Compares a branch with the branch from which it came. */
export function compareBranch({ parent, main, branch }: BranchVersions): BranchChanges {
  const [ours, theirs] = [columnsOf(main), columnsOf(branch)];
  const missingIn = (from: ReadonlyMap<string, Column>, other: ReadonlyMap<string, Column>) =>
    [...from].filter(([name]) => !other.has(name)).map(([, column]) => column);
  const both = [...ours].flatMap(([name, column]) => {
    const other = theirs.get(name);
    return other === undefined ? [] : [{ main: column, branch: other }];
  });
  const shared = new Map(branch.fragments.map((fragment) => [fragment.id, fragment]));
  const isShared = (each: DataFragment) => {
    const theirs = shared.get(each.id);
    return hasSameRows(each, theirs) && sharesFile(each, theirs);
  };
  const unchanged = countRows({ fragments: main.fragments.filter(isShared) }).rows;
  return {
    added: missingIn(theirs, ours),
    removed: missingIn(ours, theirs),
    changed: both.filter((each) => formOf(each.main) !== formOf(each.branch)),
    rows: {
      unchanged,
      onMain: countRows(main).rows - unchanged,
      onBranch: countRows(branch).rows - unchanged,
    },
    baseMoved: !isSame(parent, main),
    rowChange:
      countRows(parent).rows !== countRows(branch).rows
        ? "count"
        : keepsRows(parent, branch)
          ? "none"
          : "values",
  };
}

/** Returns the files of a branch that have values of added columns. */
export function filesWith(branch: Manifest, added: readonly Column[]): DataFile[] {
  const ids = new Set(added.flatMap(({ fields }) => fields.map(({ id }) => id)));
  return branch.fragments.flatMap(({ files }) =>
    files.filter((file) => file.fields.some((id) => ids.has(id))),
  );
}

/**
 * Gives a copy of the newest version of the main branch the columns that a branch has added; see {@link compareBranch}.
 *
 * @param names the names that the branch's files with values of the columns have on the main branch, by their names on the branch
 * @throws LanceError ConcurrentModification if the version is not the one that was compared
 */
export function addBranchColumns(
  manifest: Manifest,
  { main, branch }: BranchVersions,
  added: readonly Column[],
  names: ReadonlyMap<string, string>,
): Change {
  if (!isSame(main, manifest)) {
    throw new LanceError("ConcurrentModification", "the main branch changed concurrently; try again");
  }
  const byId = new Map(branch.fragments.map((fragment) => [fragment.id, fragment]));
  manifest.fields.push(...added.flatMap(({ fields }) => fields.map(copyMessage)));
  for (const fragment of manifest.fragments) {
    for (const file of byId.get(fragment.id)?.files ?? []) {
      const path = names.get(file.path);
      if (path !== undefined) fragment.files.push(Object.assign(copyMessage(file), { path }));
    }
  }
  const value = create(Transaction_MergeSchema, {
    fragments: manifest.fragments,
    schema: manifest.fields,
    schemaMetadata: manifest.schemaMetadata,
    preservesNullability: added.every(({ field }) => field.nullable),
  });
  return { operation: { case: "merge", value } };
}

function columnsOf({ fields }: Manifest): Map<string, Column> {
  const columns = new Map<string, Column & { readonly fields: Field[] }>();
  const rootOf = new Map<number, string>();
  // Parents precede their children.
  for (const field of fields) {
    const root = field.parentId === -1 ? field.name : rootOf.get(field.parentId);
    if (root === undefined) continue;
    rootOf.set(field.id, root);
    if (field.parentId === -1) columns.set(root, { field, fields: [field] });
    else columns.get(root)?.fields.push(field);
  }
  return columns;
}

/** A column as data: equal for two columns that a data file knows by the same fields and that have the same types. */
function formOf({ fields }: Column): string {
  return JSON.stringify(columnFacts(fields));
}

/** Whether two versions have the same columns and the same rows with the same values. */
function isSame(before: Manifest, after: Manifest): boolean {
  const forms = (version: Manifest) => [...columnsOf(version).values()].map(formOf).join();
  const namesOf = ({ fragments }: Manifest) =>
    fragments.map(({ files }) => files.map(({ path }) => path).join()).join(";");
  return forms(before) === forms(after) && namesOf(before) === namesOf(after) && keepsRows(before, after);
}

/** Whether a later version has the same rows, with the same values in the columns that there were. */
function keepsRows(before: Manifest, after: Manifest): boolean {
  if (before.fragments.length !== after.fragments.length) return false;
  const known = new Set(before.fields.map(({ id }) => id));
  const byId = new Map(after.fragments.map((fragment) => [fragment.id, fragment]));
  return before.fragments.every((fragment) => {
    const later = byId.get(fragment.id);
    return later !== undefined && hasSameRows(fragment, later) && keepsValues(fragment, later, known);
  });
}

function hasSameRows(before: DataFragment, after: DataFragment | undefined): boolean {
  return after?.physicalRows === before.physicalRows && deletionsOf(before) === deletionsOf(after);
}

/** Whether fragments of two branches have a file in common; new ones of both may have the same number. */
function sharesFile({ files }: DataFragment, other: DataFragment | undefined): boolean {
  const paths = new Set(other?.files.map(({ path }) => path));
  return files.some(({ path }) => paths.has(path));
}

function deletionsOf({ deletionFile }: DataFragment): string | undefined {
  return deletionFile && `${deletionFile.fileType}/${deletionFile.readVersion}/${deletionFile.id}`;
}

/** Whether a fragment has the files that there were, and values of new fields alone in others. */
function keepsValues(before: DataFragment, after: DataFragment, known: ReadonlySet<number>): boolean {
  const there = new Map(before.files.map(({ path, fields }) => [path, fields.join()]));
  const kept = after.files.filter(({ path }) => there.has(path));
  return (
    kept.length === there.size &&
    kept.every(({ path, fields }) => there.get(path) === fields.join()) &&
    after.files.every(({ path, fields }) => there.has(path) || !fields.some((id) => known.has(id)))
  );
}
