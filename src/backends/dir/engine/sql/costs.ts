import { ITEMS_PER_STEP, inSlices, type Steps } from "../../../../runtime/pace.ts";
import { MAX_BATCH_ROWS } from "../row-widths.ts";
import { calledBy, startOf } from "./functions.ts";
import { ignoresSpace, stepsOfLike, stepsOfRegexp } from "./patterns.ts";
import { invalidSql, nameOf } from "./tokens.ts";
import {
  constantOf,
  PATTERN_OPERATORS,
  type SqlKnot,
  type SqlNode,
  type SqlOperation,
  withoutBrackets,
} from "./tree.ts";
import { treeSteps } from "./trees.ts";

/*
 * A step is the time for which the engine follows one part of a pattern at each character of a text: 5 ns for a byte. An expression of the
 * most steps takes about two seconds for the 8192 rows that the engine reads at a time, if their texts have 100 bytes (docs/adr/0034).
 */

/** Maximum number of steps that an expression may take at each character of a row. */
export const MAX_STEPS = 512;
/** Number of steps from which on an expression may hold a thread of the engine for long. */
export const COSTLY_STEPS = 16;
/** Maximum number of steps of a pattern. */
export const MAX_PATTERN_STEPS = 256;
/** Maximum length of a pattern, in characters. */
const MAX_PATTERN_LENGTH = 4096;
/** Maximum number of values, other than constants, that an expression puts together, for example by `concat`. */
export const MAX_JOINED = 128;

/** Functions whose second argument is a regular expression, and the place of their flags among the arguments. */
const FLAGS_AT = new Map([
  ["regexp_like", 2],
  ["regexp_match", 2],
  ["regexp_count", 3],
  ["regexp_instr", 4],
  ["regexp_replace", 3],
]);
const FLAGS = /^[a-wyz]*$/i;

/** Steps of a call of each of some functions, as measured. */
const CALL_STEPS = new Map([
  ...steps(1 / 32, "random uuid now today pi current_date current_time current_timestamp"),
  ...steps(1 / 4, "abs ceil floor round signum trunc isnan iszero coalesce ifnull nullif nvl nvl2 is_valid"),
  ...steps(1 / 4, "make_array make_list named_struct struct"),
  ...steps(4, "regexp_like regexp_match regexp_instr"),
  ...steps(16, "regexp_count regexp_replace translate overlay find_in_set array_join list_join"),
  ...steps(16, "array_has_all array_has_any array_min array_max array_sort"),
  ...steps(16, "list_has_all list_has_any list_min list_max list_sort"),
  ...steps(32, "array_union array_intersect array_except array_distinct array_to_string string_to_array"),
  ...steps(32, "list_union list_intersect list_except list_distinct list_to_string string_to_list"),
  ...steps(64, "to_char date_format lpad rpad repeat array_repeat array_resize list_repeat list_resize"),
]);
/** Steps of a call of any other function, and of one with lists. */
const [OTHER_STEPS, LIST_STEPS] = [2, 8];
const OF_LISTS = /^(?:array|list|map|arrays|st)_|^(?:map|flatten|cardinality|range|generate_series)$/;

/** Functions that put their arguments together. */
const JOINING = new Set(
  `concat concat_ws make_array make_list named_struct struct map arrays_zip list_zip array_concat array_cat list_concat
  list_cat array_append array_prepend array_push_back array_push_front list_append list_prepend list_push_back
  list_push_front`.split(/\s+/),
);
/** Functions that repeat their first argument as often as the second says. */
const REPEATING = new Set(["repeat", "array_repeat", "list_repeat"]);

function steps(number: number, names: string): [name: string, steps: number][] {
  return names.split(" ").map((name) => [name, number]);
}

/**
 * Returns the number of steps that an expression may take at each character of a row.
 *
 * The steps of the work throw LanceError InvalidInput for a pattern that is not a constant or takes too many steps, for too many steps in total, and
 * for too many values that are put together.
 *
 * @param nodes those of an expression whose functions are known, or of a part of it, in their order
 */
export function* stepsOf(nodes: readonly SqlKnot[], text: string): Steps<number> {
  let [sum, joined, repeatedTo, times] = [0, 0, 0, 1];
  for (const [index, node] of nodes.entries()) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    if (node.at >= repeatedTo) times = 1;
    const name = calledBy(node);
    if (name !== undefined && node.kind === "bracket") {
      const { items } = node;
      const values = JOINING.has(name) ? items.filter((item) => constantOf(item) === undefined).length : 0;
      sum += callSteps(name, items) + values;
      joined += times * values;
      if (REPEATING.has(name))
        [repeatedTo, times] = [items.at(-1)?.end ?? 0, Number(constantOf(items[1]) ?? 1)];
    } else if (node.kind === "operation") {
      if (node.operator === "||") joined += times;
      else if (PATTERN_OPERATORS.has(node.operator)) sum += operatorSteps(node, text);
    }
    if (joined > MAX_JOINED) {
      throw invalidSql(
        `arrays, operators such as || and calls such as concat put more than ${MAX_JOINED} values together`,
        node.at,
      );
    }
    if (sum > MAX_STEPS) {
      throw invalidSql(
        `its calls and patterns take more than ${MAX_STEPS} steps for each row; most calls take ${OTHER_STEPS}`,
        node.at,
      );
    }
  }
  return sum;
}

/** The parts of a text without which it costs little. */
const COSTS = /[([]|like|similar|rlike|regexp/i;

/** Returns the number of steps of some checked expressions together, in steps of work. */
export function* costSteps(expressions: readonly (string | undefined)[]): Steps<number> {
  let sum = 0;
  for (const expression of expressions) {
    if (expression === undefined || !COSTS.test(expression)) continue;
    const { nodes, text } = yield* treeSteps(expression);
    sum += yield* stepsOf(nodes, text);
  }
  return sum;
}

/** Returns whether some checked expressions may hold a thread of the engine for long. */
export async function areCostly(expressions: readonly (string | undefined)[]): Promise<boolean> {
  return (await inSlices(costSteps(expressions))) >= COSTLY_STEPS;
}

/**
 * Steps times rows of a batch. The engine stops between two batches, and each takes at most 0.3 s for texts of 100 bytes. Smaller ones would take longer
 * together, because the engine prepares each pattern again for each batch.
 */
const BATCH_STEPS = 64 * MAX_BATCH_ROWS;

/** Steps times rows of the work that the engine may do for a query that it cannot stop: a second or two for texts of 100 bytes. */
export const UNSTOPPED_STEPS = 4 * BATCH_STEPS;

/** Returns the number of rows that the engine may read at a time for expressions of so many steps. */
export function rowsOfSteps(steps: number): number {
  return Math.max(1, Math.floor(BATCH_STEPS / steps));
}

function callSteps(name: string, list: readonly SqlNode[]): number {
  const own = CALL_STEPS.get(name) ?? (OF_LISTS.test(name) ? LIST_STEPS : OTHER_STEPS);
  const flagsAt = FLAGS_AT.get(name);
  if (flagsAt === undefined) return own;
  const [, pattern, replacement] = list;
  const flags = list[flagsAt];
  if (flags !== undefined && !FLAGS.test(textOf(flags) ?? "?")) {
    throw invalidSql(`the flags of ${name} must be letters other than x, not an expression`, startOf(flags));
  }
  const grown = name === "regexp_replace" ? 8 * Math.max(0, (constantOf(replacement)?.length ?? 0) - 2) : 0;
  return own + grown + patternSteps(pattern, `the pattern of ${name}`, stepsOfRegexp, startOf(pattern));
}

/** The brackets before a pattern. */
const BRACKETS = /[\s(]*/y;

/** Returns the steps of an operator by its right side, which may be in brackets. */
function operatorSteps({ operator, operands: [, right] }: SqlOperation, text: string): number {
  const pattern = right && withoutBrackets(right);
  if (pattern?.kind === "number" || (pattern?.kind === "word" && pattern.word === "null")) return 0;
  BRACKETS.lastIndex = right?.start ?? 0;
  BRACKETS.test(text);
  const at = right?.kind === "missing" ? right.next : BRACKETS.lastIndex;
  const what = `the pattern after ${operator.replace(" to", "").toUpperCase()}`;
  return patternSteps(pattern, what, operator.endsWith("like") ? stepsOfLike : stepsOfRegexp, at);
}

/** Returns the steps of a pattern. @throws LanceError InvalidInput, if it is not a constant, is too long or takes too many steps */
function patternSteps(
  pattern: SqlNode | undefined,
  what: string,
  stepsOfText: (text: string) => number,
  at: number | undefined,
): number {
  const text = textOf(pattern);
  if (text === undefined) {
    throw invalidSql(
      `${what} must be a string, not an expression; contains, starts_with and ends_with find a column's value`,
      at,
    );
  }
  if (text.length > MAX_PATTERN_LENGTH) {
    throw invalidSql(`${what} has ${text.length} characters, and may have ${MAX_PATTERN_LENGTH}`, at);
  }
  if (stepsOfText === stepsOfRegexp && ignoresSpace(text))
    throw invalidSql(`${what} must not have the flag x`, at);
  const number = stepsOfText(text);
  if (number <= MAX_PATTERN_STEPS) return number;
  throw invalidSql(
    `${what} takes ${Math.ceil(number)} steps, and may take ${MAX_PATTERN_STEPS}: one for each wildcard, set of characters and four other characters, as often as they are repeated`,
    at,
  );
}

/** Returns the value of a string; undefined for any other expression. */
function textOf(node: SqlNode | undefined): string | undefined {
  if (node?.kind !== "quoted") return undefined;
  const quote = node.text.charAt(0);
  return quote === "'" || quote === '"' ? nameOf(node) : undefined;
}
