import type { SqlToken } from "./tokens.ts";
import { ARITHMETIC, isText, type SqlKnot, type SqlName, type SqlNode, type SqlOperation } from "./tree.ts";

/** Words that a bracket may follow without being their arguments. */
const BEFORE_BRACKETS = new Set(
  "and or not in like ilike between is then when else case escape end from to distinct".split(" "),
);

/** Types of literals. After any other word, the engine reads a string no more, so that the word is a column. */
const LITERAL_TYPES = new Set("date time timestamp timestamptz datetime interval".split(" "));

/** The place in an expression, and what has been found in it; see the fields of a tree. */
export interface Cursor {
  readonly tokens: readonly SqlToken[];
  at: number;
  depth: number;
  /** Whether the innermost open bracket or CASE is a CASE. */
  isInCase: boolean;
  readonly nodes: SqlKnot[];
  readonly names: SqlName[];
  hasGaps: boolean;
}

/** Returns the word or symbol at a place; an empty string for any other token. */
export function wordAt({ tokens }: Cursor, at: number): string {
  return tokens[at]?.word ?? "";
}

/** Whether a name and the bracket after it are a call. */
export function isCall({ tokens }: Cursor, at: number): boolean {
  const token = tokens[at];
  if (tokens[at + 1]?.word !== "(" || token === undefined) return false;
  return token.kind === "quoted" || (token.kind === "word" && !BEFORE_BRACKETS.has(token.word));
}

export function isName(token: SqlToken): boolean {
  return token.kind === "word" || (token.kind === "quoted" && !isText(token));
}

/** Notes a name that may be a column: no field of an expression, no type, and no type of a literal such as DATE '2024-01-31'. */
export function noteName({ tokens, names }: Cursor, at: number, name: SqlName): void {
  const before = tokens[at - 1]?.word;
  if (before === "." || before === "::" || before === "as") return;
  const after = tokens[at + 1];
  if (name.kind === "word" && after !== undefined && isText(after) && LITERAL_TYPES.has(name.word)) return;
  names.push(name);
}

export function operation(
  { nodes }: Cursor,
  token: SqlToken,
  operands: readonly SqlNode[],
  negated = false,
  operator = token.word,
  joints: readonly SqlToken[] = NO_JOINTS,
): SqlOperation {
  const { start } = operands.length === 1 ? token : (operands[0] as SqlNode);
  const { end } = operands.at(-1) as SqlNode;
  const node: SqlOperation = {
    kind: "operation",
    operator,
    negated,
    operands,
    joints,
    at: token.start,
    start,
    end,
  };
  if (!ARITHMETIC.has(operator)) nodes.push(node);
  return node;
}

const NO_JOINTS: readonly SqlToken[] = [];

/** Returns an operand that is not there, before the next token. */
export function missing({ tokens, at }: Cursor): SqlNode {
  const next = tokens[at]?.start;
  const start = next ?? tokens[at - 1]?.end ?? 0;
  return { kind: "missing", next, start, end: start };
}

/** Returns parts as a sequence; a single one stays as it is. */
export function together(cursor: Cursor, parts: readonly SqlNode[]): SqlNode {
  const [first, last] = [parts[0] as SqlNode, parts.at(-1) as SqlNode];
  if (parts.length === 1) return first;
  cursor.hasGaps = true;
  return { kind: "sequence", parts, start: first.start, end: last.end };
}
