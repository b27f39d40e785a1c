import { atOnce, type Steps } from "../../../../runtime/pace.ts";
import { createBounds } from "./bounds.ts";
import { stepsOf } from "./costs.ts";
import { functionSteps } from "./functions.ts";
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
