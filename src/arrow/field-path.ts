import { LanceError } from "../namespace/errors.ts";
import type { ArrowField, ArrowSchema } from "./schema.ts";

/** A name in backticks, with doubled backticks inside; or a name without backticks and dots. */
const SEGMENT = /(?:`((?:[^`]|``)+)`|([^`.]+))(\.|$)/y;

/** Maximum number of names in a path; the engine follows them by recursion. */
const MAX_NAMES = 64;

/**
 * Splits a field path into names.
 *
 * Dots join the names. A name with special characters is in backticks, and a backtick inside is doubled.
 *
 * @throws LanceError InvalidInput
 */
export function parseFieldPath(path: string): string[] {
  const names: string[] = [];
  let end = ".";
  SEGMENT.lastIndex = 0;
  while (end === ".") {
    if (names.length === MAX_NAMES) {
      throw new LanceError("InvalidInput", `a field path must not have more than ${MAX_NAMES} names`);
    }
    const match = SEGMENT.exec(path);
    if (match === null) throw new LanceError("InvalidInput", `${JSON.stringify(path)} is not a field path`);
    const [, quoted, plain, separator = ""] = match;
    names.push(quoted?.replaceAll("``", "`") ?? (plain as string));
    end = separator;
  }
  return names;
}

const fieldsByName = new WeakMap<readonly ArrowField[], ReadonlyMap<string, ArrowField>>();

/** Returns the field of a name; the first, if several have it. A request may name thousands of fields. */
export function fieldNamed(fields: readonly ArrowField[], name: string): ArrowField | undefined {
  let byName = fieldsByName.get(fields);
  if (byName === undefined) {
    byName = new Map(fields.toReversed().map((field) => [field.name, field]));
    fieldsByName.set(fields, byName);
  }
  return byName.get(name);
}

/** A field and the names that lead to it. */
export interface FoundField {
  readonly names: readonly string[];
  readonly field: ArrowField;
}

/**
 * Returns the field to which a path leads, through structs.
 *
 * @throws LanceError InvalidInput for a malformed path, TableColumnNotFound
 */
export function resolveField({ fields }: ArrowSchema, path: string): FoundField {
  const names = parseFieldPath(path);
  let [field, among]: [ArrowField | undefined, readonly ArrowField[]] = [undefined, fields];
  for (const name of names) {
    field = fieldNamed(among, name);
    among = field?.type.name === "struct" ? field.children : [];
  }
  if (field === undefined) {
    throw new LanceError(
      "TableColumnNotFound",
      `Column ${JSON.stringify(path)} does not exist in the dataset`,
    );
  }
  return { names, field };
}

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Joins names to a path, with backticks where a name needs them. */
export function formatFieldPath(names: readonly string[]): string {
  return names.map((name) => (PLAIN_NAME.test(name) ? name : `\`${name.replaceAll("`", "``")}\``)).join(".");
}
