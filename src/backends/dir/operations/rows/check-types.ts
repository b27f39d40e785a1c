import type { ArrowField, ArrowType } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { BLOB_TYPE, EXTENSION } from "../../format/files/manifest.ts";

/** Types whose values have no fixed width, on which the engine fails in a list of fixed size. */
const WITHOUT_WIDTH: ReadonlySet<ArrowType["name"]> = new Set([
  ...["utf8", "large_utf8", "utf8_view", "binary", "large_binary", "binary_view"],
] as const);

/** Types that the engine cannot store as items of lists of fixed size. */
const UNSTORABLE_ITEMS: ReadonlySet<ArrowType["name"]> = new Set([
  ...(["null", "list", "large_list", "map"] as const),
  ...WITHOUT_WIDTH,
]);

/** Types whose values the engine stores in a dictionary. */
const IN_DICTIONARIES: ReadonlySet<ArrowType["name"]> = new Set([
  ...(["null", "bool", "int", "float"] as const),
  ...WITHOUT_WIDTH,
]);

/** Maximum number of lists of fixed size in each other: the engine cannot decode the description of 49. */
const MAX_FIXED_LISTS = 32;

/**
 * Refuses columns that the engine stores and cannot read, as they were or at all, after which no query could read the other columns of the
 * table either; and types on which it fails.
 *
 * @param fixedLists number of lists of fixed size around the fields. Default: none.
 * @throws LanceError InvalidInput
 */
export function checkTypes(fields: readonly ArrowField[], fixedLists = 0): void {
  for (const field of fields) {
    const within = field.type.name === "fixed_size_list" ? fixedLists + 1 : 0;
    const problem =
      within > MAX_FIXED_LISTS
        ? `is the innermost of more than ${MAX_FIXED_LISTS} lists of fixed size, which the engine cannot read`
        : problemOf(field);
    if (problem !== undefined)
      throw new LanceError("InvalidInput", `column ${JSON.stringify(field.name)} ${problem}`);
    checkTypes(field.children, within);
  }
}

function problemOf({ name, type, children, dictionary }: ArrowField): string | undefined {
  // Clients that take the schema through Arrow's C interface end their process.
  if (name.includes("\0")) return "has a null character in its name";
  if (dictionary !== undefined && !IN_DICTIONARIES.has(type.name))
    return `is a dictionary of ${type.name}, which the engine cannot store`;
  switch (type.name) {
    case "decimal":
      return decimalProblem(type);
    case "timestamp":
      return timezoneProblem(type.timezone);
    case "struct":
      if (new Set(children.map(({ name }) => name)).size === children.length) return undefined;
      return "has two fields of the same name";
    case "fixed_size_list":
      return children.map((child) => itemProblem(child, type.size)).find((problem) => problem !== undefined);
    default:
      return undefined;
  }
}

/**
 * Refuses columns of a new schema that the engine could cast and cannot store.
 *
 * @throws LanceError InvalidInput
 */
export function checkStorable(fields: readonly ArrowField[]): void {
  for (const { name, type, children } of fields) {
    const unstorable = unstorableForm(type);
    if (unstorable !== undefined)
      throw new LanceError(
        "InvalidInput",
        `column ${JSON.stringify(name)} is ${unstorable}, which the engine cannot store`,
      );
    checkStorable(children);
  }
}

function unstorableForm(type: ArrowType): string | undefined {
  switch (type.name) {
    case "interval":
      return `an interval of ${type.bits} bits`;
    case "decimal":
      return type.bits < 128 ? `a decimal of ${type.bits} bits` : undefined;
    case "map":
      return type.keysSorted ? "a map with sorted keys" : undefined;
    case "fixed_size_list":
      return type.size === 0 ? "a fixed_size_list of size 0" : undefined;
    default:
      return undefined;
  }
}

/** Largest precision of decimals, by their bits. */
const MAX_PRECISION = { 32: 9, 64: 18, 128: 38, 256: 76 } as const;

/** Returns why no client could read a decimal with these parameters; undefined if one can. */
export function decimalProblem({
  bits,
  precision,
  scale,
}: Omit<Extract<ArrowType, { name: "decimal" }>, "name">): string | undefined {
  const max = MAX_PRECISION[bits];
  if (precision < 1 || precision > max)
    return `is a decimal of ${bits} bits with precision ${precision}, which must be between 1 and ${max}`;
  if (scale <= precision) return undefined;
  return `is a decimal with scale ${scale}, which must not be above its precision ${precision}`;
}

/** Lance writes a timestamp as its unit and its timezone with a colon between them, and a dash for none. */
export function timezoneProblem(timezone = ""): string | undefined {
  if (timezone !== "-" && !/[:\0]/.test(timezone)) return undefined;
  return `has the timezone ${JSON.stringify(timezone.slice(0, 100))}, which the engine cannot store; use a name such as "Asia/Kolkata", or an offset such as "+0530"`;
}

function itemProblem({ type, dictionary }: ArrowField, size: number): string | undefined {
  const isUnreadable =
    UNSTORABLE_ITEMS.has(type.name) ||
    (type.name === "fixed_size_binary" && type.width === 0) ||
    (type.name === "struct" && size !== 1);
  if (dictionary === undefined && !isUnreadable) return undefined;
  const items = dictionary === undefined ? type.name : "dictionary";
  return `is a fixed_size_list of ${items}, which the engine cannot store; a list can have such items`;
}

/** The part of a stored blob that says where its bytes are. */
const KIND = "kind";

/**
 * Refuses blobs in the form in which the engine stores them. In this form a row says where its blob is, which may be in any file of the
 * server; the engine checks that only in the form in which clients send blobs.
 *
 * @throws LanceError InvalidInput
 */
export function checkBlobs(fields: readonly ArrowField[]): void {
  for (const { name, metadata, children } of fields) {
    if (metadata[EXTENSION] === BLOB_TYPE && children.some((child) => child.name === KIND)) {
      const column = JSON.stringify(name);
      throw new LanceError("InvalidInput", `column ${column} has stored blobs; send their bytes in "data"`);
    }
    checkBlobs(children);
  }
}
