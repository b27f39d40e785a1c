import type { ArrowField } from "../../../../arrow/schema.ts";
import { atOnce, ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { treeOf } from "./parse.ts";
import { nameOf, type SqlToken, type TokenCheck, tokenSteps } from "./tokens.ts";
import type { SqlTree } from "./tree.ts";

/** Parses a text without a pause; see {@link treeSteps}. @throws LanceError InvalidInput */
export function parseSql(text: string): SqlTree {
  return atOnce(treeSteps(text));
}

/** Number of short texts whose trees are kept, and the maximum length of one, in UTF-16 units: 10 MB if all have a token for each. */
const [KEPT, SHORT] = [16, 4096];

const short: (SqlTree | undefined)[] = Array.from({ length: KEPT });
let oldest = 0;
let long: WeakRef<SqlTree> | undefined;

/**
 * Parses a text, in steps. The trees of the latest texts are kept, because several parts of a call look at the same one.
 *
 * @param check called while the text is read, as by {@link tokenSteps}
 * The steps throw LanceError InvalidInput for text that the tokenizer refuses, and for one that is too deep.
 */
export function* treeSteps(text: string, check?: TokenCheck): Steps<SqlTree> {
  const known = check === undefined ? knownTree(text) : undefined;
  if (known !== undefined) return known;
  const tokens = yield* tokenSteps(text, check);
  if (tokens.length > ITEMS_PER_STEP) yield;
  const tree = treeOf(text, tokens);
  keep(tree);
  return tree;
}

function knownTree(text: string): SqlTree | undefined {
  if (text.length <= SHORT) return short.find((tree) => tree?.text === text);
  const tree = long?.deref();
  return tree?.text === text ? tree : undefined;
}

/** Keeps a tree in place of the oldest one. A ring costs a fifth of a map. */
function keep(tree: SqlTree): void {
  if (tree.text.length > SHORT) {
    long = new WeakRef(tree);
    return;
  }
  short[oldest] = tree;
  oldest = (oldest + 1) % KEPT;
}

/** Returns the columns that SQL expressions may read: those whose names, in whatever case, are among {@link namesIn}. */
export function namedColumns(expressions: readonly string[], fields: readonly ArrowField[]): ArrowField[] {
  const names = new Set<string>();
  for (const expression of expressions) {
    for (const name of namesIn(parseSql(expression))) names.add(name);
  }
  return fields.filter(({ name }) => names.has(name.toLowerCase()));
}

/**
 * Returns the names in an expression that may be columns, in lower case: all but the fields of structs, functions, types and texts. Some words
 * of the grammar are among them.
 */
export function namesIn(tree: SqlTree): Set<string> {
  const found = new Set<string>();
  for (const name of tree.names)
    found.add(lowerCase(name.kind === "path" ? (name.parts[0] as SqlToken) : name));
  return found;
}

/** Returns the paths in an expression that may be columns or fields of their structs, in lower case. */
export function pathsIn({ names }: SqlTree): string[][] {
  return names.map((name) => (name.kind === "path" ? name.parts : [name]).map(lowerCase));
}

function lowerCase(name: SqlToken): string {
  return name.word || nameOf(name).toLowerCase();
}
