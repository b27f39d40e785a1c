import { LanceError } from "../../../../namespace/errors.ts";
import { atOnce, type Steps } from "../../../../runtime/pace.ts";
import { createBounds } from "./bounds.ts";
import { MAX_STEPS, stepsOf } from "./costs.ts";
import { functionSteps, MAX_VALUE_LENGTH } from "./functions.ts";
import { invalidSql, isClosing, type SqlToken } from "./tokens.ts";
import { treeSteps } from "./trees.ts";

/** Words after which an operand follows; after any other word, a clause's first word begins a clause. */
const OPERATORS = new Set(
  "and or not like ilike in is between then when else case escape div distinct similar to".split(" "),
);

const CLAUSES = new Set(
  "from where group order having limit offset union intersect except minus fetch window qualify into as join".split(
    " ",
  ),
);

/** Checks a text as {@link expressionCheck} does, without a pause. @throws LanceError InvalidInput */
export function checkExpression(text: string): void {
  atOnce(expressionCheck(text));
}

/**
 * Checks a text before the engine parses it, in steps: that it is a single expression, and that it exhausts neither the
 * engine's stack nor its memory.
 *
 * The engine reads the first expression and ignores the rest, so that `a, b`, `a; more` and `a LIMIT 5` would
 * silently mean `a`.
 *
 * The steps return how many steps the engine takes for each character of a row; see {@link stepsOf}. They throw LanceError InvalidInput.
 */
export function* expressionCheck(text: string): Steps<number> {
  const bounds = createBounds();
  const tree = yield* treeSteps(text, (read, index) => {
    checkOneExpression(read, index);
    bounds.take(read, index);
  });
  bounds.end();
  yield* functionSteps(tree);
  return yield* stepsOf(tree.nodes, text);
}

/** Checks that a token does not end the expression. */
function checkOneExpression(tokens: readonly SqlToken[], index: number): void {
  const [previous, token, next] = [tokens[index - 1], tokens[index] as SqlToken, tokens[index + 1]];
  const outside = token.depth === 0;
  if (token.text === ";") throw invalidSql("it must be one expression, without a semicolon");
  if (token.text === "," && outside) throw invalidSql("it must be one expression, not several");
  if (token.word === "~")
    throw invalidSql("it must not have operators with ~, such as ~*, !~ and ~~", token.start);
  if (token.word === "(" && previous !== undefined && isClosing(previous.word))
    throw invalidSql("a bracket must not follow a closed one", token.start);
  const before = tokens[index - 2];
  if (token.word === "null" && previous?.word === "not" && before !== undefined && endsOperand(before))
    throw invalidSql("NOT NULL must be IS NOT NULL", token.start);
  if (isPlaceholder(token, next)) throw invalidSql(`it must not have placeholders such as ${token.text}`);
  if (outside && isWord(token, CLAUSES) && previous !== undefined && endsOperand(previous)) {
    throw invalidSql(`it must be one expression, without ${token.text.toUpperCase()}`);
  }
}

/** Whether a token is one of some words, in lower case. */
function isWord(token: SqlToken | undefined, words: ReadonlySet<string>): boolean {
  return token?.kind === "word" && words.has(token.word);
}

function endsOperand(token: SqlToken): boolean {
  if (token.kind === "symbol") return isClosing(token.text);
  return !isWord(token, OPERATORS);
}

/** Whether a token is `?`, `$1` or `:name`, for which the engine has no values. */
function isPlaceholder({ kind, text, end }: SqlToken, next: SqlToken | undefined): boolean {
  if (kind !== "symbol") return false;
  return text === "?" || text === "$" || (text === ":" && next?.start === end && next.kind !== "symbol");
}

/**
 * Checks that a predicate is a single expression that the engine can evaluate safely; see {@link expressionCheck}.
 *
 * The steps return the predicate; undefined if it is missing. They throw LanceError InvalidInput, also for a blank predicate, which must not
 * select all rows.
 */
export function* predicateSteps<T extends string | undefined>(predicate: T): Steps<T> {
  if (predicate === undefined) return predicate;
  if (isBlank(predicate))
    throw new LanceError("InvalidInput", "the condition must not be blank; `true` selects all rows");
  yield* expressionCheck(predicate);
  return predicate;
}

/** An expression, and its name in errors, for example `the expression of column "a"`. */
export type NamedExpression = readonly [expression: string, what: string];

/** Maximum length of all expressions of a request, in characters. */
export const MAX_EXPRESSIONS_LENGTH = 1024 * 1024;

/**
 * Checks the expressions whose values a request asks for; none may be missing.
 *
 * @throws LanceError InvalidInput
 */
export function checkExpressions(expressions: readonly NamedExpression[]): void {
  atOnce(expressionSteps(expressions));
}

/**
 * Returns the steps of {@link checkExpressions}, an expression each.
 *
 * @param most maximum length of all together, in characters. Default: {@link MAX_VALUE_LENGTH}, since each may become
 *   part of every row that is processed at a time.
 */
export function* expressionSteps(
  expressions: readonly NamedExpression[],
  most: number = MAX_VALUE_LENGTH,
): Steps<void> {
  const length = lengthOf(expressions.map(([expression]) => expression));
  if (length > most) {
    throw new LanceError("InvalidInput", `the expressions have ${length} characters; the maximum is ${most}`);
  }
  let steps = 0;
  for (const [expression, what] of expressions) {
    yield;
    if (isBlank(expression)) throw new LanceError("InvalidInput", `${what} is empty`);
    steps += yield* expressionCheck(expression);
    if (steps > MAX_STEPS) {
      throw new LanceError(
        "InvalidInput",
        `the calls and patterns of all expressions take more than ${MAX_STEPS} steps for each row`,
      );
    }
  }
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Returns the length of all texts, in characters. */
export function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}
