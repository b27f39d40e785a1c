import type { ArrowField } from "../../../../arrow/schema.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { nameOf, type SqlToken } from "./tokens.ts";
import { COMPARISONS, pathOf, type SqlNode, type SqlTree, withoutBrackets } from "./tree.ts";

/** A comparison of a column with other operands. */
export interface Comparison {
  readonly column: ArrowField;
  /** The operands: one, the two of a BETWEEN, or the items of a list. */
  readonly operands: readonly SqlNode[];
}

/** Finds the comparisons with columns of a table, and with fields of its structs, in steps. */
export function* comparisonsIn({ nodes }: SqlTree, fields: readonly ArrowField[]): Steps<Comparison[]> {
  const found: Comparison[] = [];
  for (const [index, node] of nodes.entries()) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    if (node.kind !== "operation") continue;
    const [left, ...others] = node.operands as [SqlNode, ...SqlNode[]];
    const column = columnOf(withoutBrackets(left), fields);
    const [right] = others;
    if (COMPARISONS.has(node.operator) && right !== undefined) {
      if (column !== undefined) found.push({ column, operands: [right] });
      const other = column === undefined ? columnOf(withoutBrackets(right), fields) : undefined;
      if (other !== undefined) found.push({ column: other, operands: [left] });
    } else if (column !== undefined && node.operator === "between") {
      found.push({ column, operands: others });
    } else if (column !== undefined && node.operator === "in" && right?.kind === "bracket") {
      found.push({ column, operands: right.items });
    }
  }
  return found;
}

/** Returns the column that an operand is; undefined if it is anything else. */
export function columnOf(node: SqlNode, fields: readonly ArrowField[]): ArrowField | undefined {
  let [column, among]: [ArrowField | undefined, readonly ArrowField[]] = [undefined, fields];
  for (const token of pathOf(node) ?? []) {
    column = fieldOf(among, token);
    if (column === undefined) return undefined;
    among = column.type.name === "struct" ? column.children : [];
  }
  return column;
}

/** Returns the field that a token names. In double quotes, the engine takes the name of a column for one, too. */
function fieldOf(among: readonly ArrowField[], token: SqlToken): ArrowField | undefined {
  const byName = namesOf(among);
  const name = nameOf(token);
  return byName.get(name) ?? (token.kind === "word" ? byName.get(token.word) : undefined);
}

const fieldsByName = new WeakMap<readonly ArrowField[], ReadonlyMap<string, ArrowField>>();

/** Returns fields by their names, and by these in lower case, by which the engine finds them, too. */
function namesOf(fields: readonly ArrowField[]): ReadonlyMap<string, ArrowField> {
  let byName = fieldsByName.get(fields);
  if (byName === undefined) {
    const inLowerCase = fields.map((field) => [field.name.toLowerCase(), field] as const);
    byName = new Map([...inLowerCase, ...fields.map((field) => [field.name, field] as const)]);
    fieldsByName.set(fields, byName);
  }
  return byName;
}
