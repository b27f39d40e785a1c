import { ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import { MAX_CONDITIONS } from "../../sql/bounds.ts";
import { invalidSql, nameOf, type SqlToken } from "../../sql/tokens.ts";
import {
  constantOf,
  isGroup,
  pathOf,
  type SqlEdit,
  type SqlKnot,
  type SqlNode,
  type SqlTree,
} from "../../sql/tree.ts";

/*
 * The engine's optimizer joins two lists that AND or OR put beside each other if they are compared with the same value, and takes a list
 * that becomes empty for false, or for true if it is negated. If the value is null, both are wrong: `a NOT IN (1) OR a NOT IN (2)` becomes
 * true. It also drops nulls from lists, and compares items by their text. Comparisons that OR joins become lists, too, and so does
 * `array_has([1, 2], a)`.
 *
 * It joins only neighbours, so that a condition between the two keeps them apart. That condition is always true beside AND and always false
 * beside OR, as only its evaluation shows, and the result is the same, also if it is null. No index answers it, so that conditions before the
 * first list and after the last one remain without it.
 */

/** A condition that no row meets, as only its evaluation shows. */
export const NEVER = "random() > 2";
const ALWAYS = "random() <= 2";

/** Returns a text of the engine about an expression without the conditions that keep its lists apart, which its author does not know. */
export function withoutSeparators(text: string): string {
  return text.replaceAll(` OR ${NEVER}`, "").replaceAll(` AND ${ALWAYS}`, "");
}

/** Where an expression is evaluated: as a condition of rows, for which null is the same as false, or for its value. */
export type Use = "condition" | "value";

/**
 * Returns the changes after which the engine does not join the lists of an expression wrongly, in steps.
 *
 * The steps throw LanceError InvalidInput if that takes more conditions than an expression may have.
 */
export function* apartSteps(tree: SqlTree, use: Use): Steps<SqlEdit[]> {
  if (mostHalves(tree) < 4) return [];
  const joints = jointsOf(tree);
  if (joints.length === 0) return [];
  const members = yield* membersOf(tree);
  const isNegated = isNegation(tree);
  const isValue = use === "value" || tree.nodes.some(({ kind }) => kind === "case");
  // Lists that are joined by the other word alone become one with the items of both.
  const misjoining = isNegated ? "and" : "or";
  const misjoins = joints.some(({ word }) => word === misjoining);
  const isWrong = (group: Group) => isMisjoined(group, { isValue, isNegated, misjoins });
  const { first, last } = groupsOf(members).filter(isWrong).reduce(together, NOBODY);
  const apart = joints.filter(
    (_, i) => (joints[i + 1]?.start ?? tree.text.length) > first && (joints[i - 1]?.start ?? -1) < last,
  );
  if (apart.length > 0 && joints.length + apart.length >= MAX_CONDITIONS) {
    throw invalidSql(
      `AND and OR join more than ${MAX_CONDITIONS / 2} conditions, several of which compare one value by IN, = or LIKE; use fewer, longer lists`,
    );
  }
  return apart.map(({ end, text, word }) => ({
    start: end,
    end,
    text: ` ${word === "or" ? NEVER : ALWAYS} ${text}`,
  }));
}

/** Returns the AND and OR that join conditions, in their order. */
function jointsOf({ nodes }: SqlTree): SqlToken[] {
  const joints = nodes.flatMap((node) => (node.kind === "operation" ? node.joints : []));
  return joints.sort((a, b) => a.start - b.start);
}

/** Facts about all members that may be compared with the same value. */
interface Group {
  /** Positions of the first and the last member. */
  readonly first: number;
  readonly last: number;
  readonly halves: number;
  /** Whether all of them only decide, and have no nulls. */
  readonly certain: boolean;
  /** Whether one of them is a negated list. */
  readonly negates: boolean;
}

const NOBODY: Group = { first: Number.MAX_SAFE_INTEGER, last: -1, halves: 0, certain: true, negates: false };

/** Whether the engine may join members of a group, and the result may be wrong. */
function isMisjoined(
  { halves, certain, negates }: Group,
  { isValue, isNegated, misjoins }: { isValue: boolean; isNegated: boolean; misjoins: boolean },
): boolean {
  if (halves < 4) return false;
  if (isValue || !certain) return true;
  return isNegated ? misjoins || negates : misjoins && negates;
}

/** Returns a group for each column, each with the members that may prove to compare it. */
function groupsOf(members: readonly Member[]): Group[] {
  const groups = new Map<string, Group>();
  let others = NOBODY;
  for (const { at, column, halves, decides, plain, negated } of members) {
    const own = { first: at, last: at, halves, certain: decides && plain, negates: negated && halves === 2 };
    if (column === undefined) others = together(others, own);
    else groups.set(column, together(groups.get(column) ?? NOBODY, own));
  }
  return groups.size === 0 ? [others] : [...groups.values()].map((group) => together(group, others));
}

function together(a: Group, b: Group): Group {
  return {
    first: Math.min(a.first, b.first),
    last: Math.max(a.last, b.last),
    halves: a.halves + b.halves,
    certain: a.certain && b.certain,
    negates: a.negates || b.negates,
  };
}

const EQUAL = new Set(["=", "==", "!=", "<>", "like", "ilike"]);
const CONSTANTS = new Set("null true false".split(" "));
const CONJUNCTIONS = new Set(["and", "or"]);

/** Functions that look a value up in an array, unless that is a column. */
const HAS = new Set(["array_has", "array_contains", "list_has", "list_contains"]);

/** A list, or a comparison that may become part of one. */
interface Member {
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
function isNegation({ root }: SqlTree): boolean {
  const [inner] = root.kind === "operation" && root.operator === "not" ? root.operands : [];
  return inner !== undefined && isGroup(inner);
}

/** Returns a number of halves that all members together do not exceed: most expressions have too few for two lists. */
function mostHalves({ nodes }: SqlTree): number {
  let halves = 0;
  for (const node of nodes) {
    if (node.kind === "bracket") halves += HAS.has(node.name?.word ?? "") ? 2 : 0;
    else if (node.kind === "operation")
      halves += node.operator === "in" ? 2 : EQUAL.has(node.operator) ? 1 : 0;
  }
  return halves;
}

/** Finds what the engine may take for lists, in steps. */
function* membersOf(tree: SqlTree): Steps<Member[]> {
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
