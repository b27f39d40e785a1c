import { ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import { nameOf } from "../../sql/tokens.ts";
import { constantOf, isGroup, pathOf, type SqlKnot, type SqlNode, type SqlTree } from "../../sql/tree.ts";

const EQUAL = new Set(["=", "==", "!=", "<>", "like", "ilike"]);
const CONSTANTS = new Set("null true false".split(" "));
const CONJUNCTIONS = new Set(["and", "or"]);

/** Functions that look a value up in an array, unless that is a column. */
const HAS = new Set(["array_has", "array_contains", "list_has", "list_contains"]);

/** A list, or a comparison that may become part of one. */
export interface Member {
  /** Position of the operator or function that compares. */
  readonly at: number;
  /** Its part of a list, in halves: two lists can be joined. */
  readonly halves: 1 | 2;
  /** The column that is compared; undefined for any other value, which may prove to be the same as a column. */
  readonly column: string | undefined;
  readonly negated: boolean;
  /** Whether all items are known to be constants other than null. */
  readonly plain: boolean;
  /** Whether AND and OR alone lead from its result to that of the whole condition. */
  readonly decides: boolean;
}

/** Whether an expression is a NOT of all its conditions. */
export function isNegation({ root }: SqlTree): boolean {
  const [inner] = root.kind === "operation" && root.operator === "not" ? root.operands : [];
  return inner !== undefined && isGroup(inner);
}

/** Returns a number of halves that all members together do not exceed: most expressions have too few for two lists. */
export function mostHalves({ nodes }: SqlTree): number {
  let halves = 0;
  for (const node of nodes) {
    if (node.kind === "bracket") halves += HAS.has(node.name?.word ?? "") ? 2 : 0;
    else if (node.kind === "operation")
      halves += node.operator === "in" ? 2 : EQUAL.has(node.operator) ? 1 : 0;
  }
  return halves;
}

/** Finds what the engine may take for lists, in steps. */
export function* membersOf(tree: SqlTree): Steps<Member[]> {
  const deciding = yield* decidingSteps(tree);
  const members: Member[] = [];
  for (const [index, node] of tree.nodes.entries()) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    const member = memberOf(node, deciding.has(node));
    if (member !== undefined) members.push(member);
  }
  return members;
}

/** Returns the conditions that AND, OR and brackets alone join to the whole one, in steps. */
function* decidingSteps(tree: SqlTree): Steps<ReadonlySet<SqlNode>> {
  const deciding = new Set<SqlNode>();
  const { root } = tree;
  const open: SqlNode[] = isNegation(tree) && root.kind === "operation" ? [...root.operands] : [root];
  for (let node = open.pop(), looked = 1; node !== undefined; node = open.pop(), looked++) {
    if (looked % ITEMS_PER_STEP === 0) yield;
    if (isGroup(node)) open.push(...node.items);
    else if (node.kind === "operation" && CONJUNCTIONS.has(node.operator)) open.push(...node.operands);
    else deciding.add(node);
  }
  return deciding;
}

/** Returns the member that a node is; undefined for any other node, and for one that compares two columns. */
function memberOf(node: SqlKnot, isDeciding: boolean): Member | undefined {
  const { at } = node;
  if (node.kind === "bracket") {
    const isLookUp = HAS.has(node.name?.word ?? "") && columnIn(node.items[0]) === undefined;
    return isLookUp
      ? { at, halves: 2, column: undefined, negated: false, plain: false, decides: false }
      : undefined;
  }
  if (node.kind !== "operation") return undefined;
  const [left, right, ...others] = node.operands;
  const { negated } = node;
  const column = columnIn(left);
  const decides = isDeciding && others.length === 0 && !isCondition(left);
  if (node.operator === "in" && right?.kind === "bracket") {
    const plain = right.items.every((item) => constantOf(item) !== undefined);
    return { at, halves: 2, column, negated, plain, decides };
  }
  if (!EQUAL.has(node.operator)) return undefined;
  const other = others.length === 0 ? columnIn(right) : undefined;
  if (column !== undefined && other !== undefined) return undefined;
  return {
    at,
    halves: 1,
    column: column ?? other,
    negated,
    plain: true,
    decides: decides && !isCondition(right),
  };
}

/** Whether an operand is itself the result of a comparison. */
function isCondition(node: SqlNode | undefined): boolean {
  return node?.kind === "case" || (node?.kind === "operation" && !ARITHMETIC.has(node.operator));
}

const ARITHMETIC = new Set("+ - * / % || | & ^ << >>".split(" "));

/** Returns the last name of the path that an operand is; undefined if it is anything else. */
function columnIn(node: SqlNode | undefined): string | undefined {
  const names = node && pathOf(node);
  const isColumn = names?.every(({ kind, text, word }) =>
    kind === "quoted" ? text.startsWith("`") : !CONSTANTS.has(word),
  );
  const last = names?.at(-1);
  return isColumn && last ? nameOf(last).toLowerCase() : undefined;
}
