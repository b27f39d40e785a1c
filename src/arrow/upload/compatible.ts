import { isDeepStrictEqual } from "node:util";
import { LanceError } from "../../namespace/errors.ts";
import type { ArrowField, ArrowSchema, TimeUnit } from "../schema.ts";

/**
 * Checks that rows of one schema can be added to a table of another without loss of meaning.
 *
 * The engine would cast what it can, and turn 1.7 into 1. Here, a column must be of the same kind. Within a kind
 * (integers, floats, texts, lists) the engine casts, and fails if a value does not fit. It rounds floats, and would cut
 * times of a finer unit, which are refused. Columns may be in another order, and nullable columns may be missing.
 *
 * @param isAdded whether the rows become new ones, in which a missing column is null. Default: true.
 * @throws LanceError TableSchemaValidationError
 */
export function checkCompatible(rows: ArrowSchema, table: ArrowSchema, isAdded = true): void {
  checkFields(rows.fields, table.fields, "", isAdded);
}

/**
 * Checks that rows have the columns of a table, in its order and of its types. Columns that the engine stores in another
 * form, such as JSON, only have to be compatible.
 *
 * @throws LanceError TableSchemaValidationError
 */
export function checkSameColumns(rows: readonly ArrowField[], table: readonly ArrowField[], path = ""): void {
  for (const [i, to] of table.entries()) {
    const from = rows[i];
    if (from?.name !== to.name)
      throw otherColumns(
        `column ${i + 1} is ${from ? quote(path + from.name) : "missing"}, in the table ${quote(path + to.name)}`,
      );
    if (to.metadata["ARROW:extension:name"]?.startsWith("lance.")) checkField(from, to, path);
    else {
      if (!isSameType(from, to))
        throw otherColumns(
          `column ${quote(path + to.name)} is ${describeWhole(from)}, in the table ${describeWhole(to)}`,
        );
      // A list's type leaves the names of its items open.
      const children =
        to.type.name === "struct"
          ? from.children
          : from.children.map((child, at) => ({ ...child, name: to.children[at]?.name ?? child.name }));
      checkSameColumns(children, to.children, `${path}${to.name}.`);
    }
  }
  const more = rows[table.length];
  if (more !== undefined) throw otherColumns(`column ${quote(path + more.name)} is not in the table`);
}

function isSameType(a: ArrowField, b: ArrowField): boolean {
  return isDeepStrictEqual([a.type, a.dictionary?.index], [b.type, b.dictionary?.index]);
}

/** Returns a type with all its parameters. */
function describeWhole({ type: { name, ...parameters }, dictionary }: ArrowField): string {
  const parts = Object.entries(parameters).map(([key, value]) => `${key} ${value}`);
  const text = parts.length === 0 ? name : `${name} (${parts.join(", ")})`;
  return dictionary === undefined ? text : `dictionary of ${text}`;
}

function otherColumns(message: string): LanceError {
  return new LanceError("TableSchemaValidationError", `the table has a different schema: ${message}`);
}

/** Whether a dictionary of the rows becomes texts in a plain column of a table that is compatible with them. */
export function unfoldsDictionary(rows: readonly ArrowField[], table: readonly ArrowField[]): boolean {
  return rows.some((from, i) => {
    const to = table.find(({ name }) => name === from.name) ?? table[i];
    if (to === undefined) return false;
    if (from.dictionary !== undefined) return to.dictionary === undefined;
    return unfoldsDictionary(from.children, to.children);
  });
}

function checkFields(
  from: readonly ArrowField[],
  to: readonly ArrowField[],
  path: string,
  isAdded = true,
): void {
  const known = new Map(to.map((field) => [field.name, field]));
  for (const field of from) {
    const target = known.get(field.name);
    if (target === undefined) throw mismatch(`column ${quote(path + field.name)} is not in the table`);
    known.delete(field.name);
    checkField(field, target, path);
  }
  if (!isAdded) return;
  for (const missing of known.values()) {
    if (!missing.nullable) throw mismatch(`column ${quote(path + missing.name)} is missing and not nullable`);
  }
}

function checkField(from: ArrowField, to: ArrowField, path: string): void {
  if (from.type.name === "null") return;
  const [a, b] = [kindOf(from), kindOf(to)];
  // A list of the right length can become a vector; the engine checks each length.
  const widens = a === "list" && to.type.name === "fixed_size_list";
  const raises = a === "int" && b === "float";
  // The engine encodes JSON that comes as text.
  const encodes = a === "utf8" && b === "json";
  // It takes bytes as the contents of blobs.
  const stores = a === "binary" && to.metadata["ARROW:extension:name"] === "lance.blob.v2";
  if (a !== b && !widens && !raises && !encodes && !stores) {
    throw mismatch(`column ${quote(path + from.name)} is ${describe(from)}, in the table ${describe(to)}`);
  }
  if (fineness(from) > fineness(to)) {
    throw mismatch(
      `column ${quote(path + from.name)} is ${describe(from)}, and the coarser ${describe(to)} of the table would cut its values`,
    );
  }
  if (from.type.name === "struct") {
    checkFields(from.children, to.children, `${path}${from.name}.`);
    return;
  }
  for (const [i, child] of from.children.entries()) {
    const target = to.children[i];
    if (target !== undefined) checkField(child, target, `${path}${from.name}.`);
  }
}

/**
 * Returns the kind of a type. The engine casts within a kind; sizes that are part of the meaning are part of the
 * kind.
 */
function kindOf({ type, metadata }: ArrowField): string {
  if (metadata["ARROW:extension:name"] === "lance.json") return "json";
  switch (type.name) {
    case "utf8":
    case "large_utf8":
    case "utf8_view":
      return "utf8";
    case "binary":
    case "large_binary":
    case "binary_view":
      return "binary";
    case "large_list":
      return "list";
    case "fixed_size_binary":
      return `fixed_size_binary(${type.width})`;
    case "fixed_size_list":
      return `fixed_size_list(${type.size})`;
    case "decimal":
      return `decimal(scale ${type.scale})`;
    default:
      return type.name;
  }
}

/** Returns a number that is larger for a finer unit of time, and equal for all other types. */
function fineness({ type }: ArrowField): number {
  return "unit" in type ? UNITS_BY_FINENESS.indexOf(type.unit) : -1;
}

const UNITS_BY_FINENESS: readonly TimeUnit[] = ["s", "ms", "us", "ns"];

function describe(field: ArrowField): string {
  const { type } = field;
  const kind = kindOf(field);
  if ("unit" in type) return `${kind} in ${type.unit}`;
  return "bits" in type ? `${kind} of ${type.bits} bits` : kind;
}

function mismatch(message: string): LanceError {
  return new LanceError("TableSchemaValidationError", `Append with different schema: ${message}`);
}

function quote(name: string): string {
  return JSON.stringify(name);
}
