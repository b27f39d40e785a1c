import { formatFieldPath } from "../../../../arrow/field-path.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { parseSql, pathsIn } from "../../engine/sql/trees.ts";

/** Paths of columns that the engine misreads; see `findMisread`. */
export type MisreadPaths = readonly (readonly string[])[];

/** Paths in the versions to which the schemas belong. */
const known = new WeakMap<ArrowSchema, Promise<MisreadPaths>>();

/**
 * Returns the columns that the engine misreads in a version. A version without lists in structs costs a look at its schema.
 *
 * @param schema the schema of the version, the same object for each call that reads that version
 * @param find reads the files of the version
 */
export function misreadOf(schema: ArrowSchema, find: () => Promise<MisreadPaths>): Promise<MisreadPaths> {
  let paths = known.get(schema);
  if (paths === undefined) {
    const asked = hasListInStruct(schema.fields) ? find() : Promise.resolve([]);
    paths = asked.catch((error: unknown) => {
      known.delete(schema);
      throw error;
    });
    known.set(schema, paths);
  }
  return paths;
}

const LISTS: ReadonlySet<ArrowField["type"]["name"]> = new Set(["list", "large_list", "map"] as const);

function hasListInStruct(fields: readonly ArrowField[], inStruct = false): boolean {
  return fields.some(({ type, nullable, children }) => {
    if (inStruct && LISTS.has(type.name)) return true;
    return hasListInStruct(children, inStruct || (nullable && children.length > 0 && !LISTS.has(type.name)));
  });
}

/** The part of a table that a call reads. */
export interface Reads {
  /** Whether it reads all columns, except those with the names of `without`. Default: false. */
  readonly all?: boolean;
  readonly without?: readonly string[];
  /** Paths of fields, conditions and other SQL expressions; undefined ones count for nothing. */
  readonly expressions?: readonly (string | undefined)[];
}

/**
 * Refuses a call whose answer, or whose new rows, would have values of other rows.
 *
 * @throws LanceError Unsupported
 */
export function refuseMisread(
  paths: MisreadPaths,
  { all = false, without = [], expressions = [] }: Reads,
): void {
  const isRead = (path: readonly string[]) =>
    (all && !without.includes(path[0] as string)) ||
    expressions.some((text) => text !== undefined && mentions(text, path));
  const misread = paths.find(isRead);
  if (misread === undefined) return;
  throw new LanceError(
    "Unsupported",
    `the engine would read wrong values from ${formatFieldPath(misread)}: its files have null structs, lists without items, and long items on one page; leave this field out, or have a newer version of lance rewrite the files ("Lists inside of structs" in docs/limits.md)`,
  );
}

/** Whether an expression may read a field, something in it, or a struct around it. */
export function mentions(text: string, path: readonly string[]): boolean {
  const field = path.map((name) => name.toLowerCase());
  // A merge puts the name of a side before the path.
  const isFrom = (names: readonly string[], first: number) =>
    field.every((name, depth) =>
      depth > 0 && first + depth >= names.length ? true : names[first + depth] === name,
    );
  return pathsIn(parseSql(text)).some((names) => names.some((_, first) => isFrom(names, first)));
}
