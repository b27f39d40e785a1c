import type { SqlToken } from "./tokens.ts";

/** The syntax tree of a SQL expression. Its nodes know their place in the text, which a caller's error and an edit need. */
export interface SqlTree {
  readonly text: string;
  readonly root: SqlNode;
  /** All brackets, CASEs, conditions and operators that put values together, in the order of their names and operators in the text. */
  readonly nodes: readonly SqlKnot[];
  /** The words, names in quotes and paths that may be columns. */
  readonly names: readonly SqlName[];
  /** Whether something is missing, as an operator between two operands, which other syntax can also be: the engine may ignore what follows. */
  readonly hasGaps: boolean;
}

/** A part of an expression. A single token is its own node. */
export type SqlNode = SqlToken | SqlPath | SqlKnot | SqlSequence | SqlMissing;

/** A node that the passes over a tree look at. */
export type SqlKnot = SqlBracket | SqlCase | SqlOperation;

/** A possible column: a word, a name in backticks or double quotes, or a path of these. */
export type SqlName = SqlToken | SqlPath;

interface Place {
  /** Start and end in the text. */
  readonly start: number;
  readonly end: number;
}

/** Names joined by dots. */
export interface SqlPath extends Place {
  readonly kind: "path";
  readonly parts: readonly SqlToken[];
}

/** A bracket with its items, of which there is at least one, which may be missing. */
export interface SqlBracket extends Place {
  readonly kind: "bracket";
  readonly opening: string;
  /** The function or type whose arguments these are. */
  readonly name: SqlToken | undefined;
  readonly items: readonly SqlNode[];
  /** Whether a query is in it. */
  readonly isQuery: boolean;
  /** Position of the bracket itself. */
  readonly open: number;
  readonly at: number;
}

/** A CASE, whose conditions and values are expressions. */
export interface SqlCase extends Place {
  readonly kind: "case";
  readonly parts: readonly SqlNode[];
  readonly at: number;
}

/** Operands with the operator before or between them. */
export interface SqlOperation extends Place {
  readonly kind: "operation";
  /** In lower case, without NOT; `and` and `or` have any number of operands. */
  readonly operator: string;
  /** Whether NOT is a part of the operator, as in NOT IN. */
  readonly negated: boolean;
  readonly operands: readonly SqlNode[];
  /** The tokens of `and` and `or`. */
  readonly joints: readonly SqlToken[];
  /** Position of the operator. */
  readonly at: number;
}

/** Parts of any other syntax, in their order: the gateway leaves it to the engine. */
export interface SqlSequence extends Place {
  readonly kind: "sequence";
  readonly parts: readonly SqlNode[];
}

/** An operand that is not there. */
export interface SqlMissing extends Place {
  readonly kind: "missing";
  /** Position of the token in its place. */
  readonly next: number | undefined;
}

/** Returns the nodes directly below a node. */
export function partsOf(node: SqlNode): readonly SqlNode[] {
  switch (node.kind) {
    case "bracket":
      return node.items;
    case "operation":
      return node.operands;
    case "case":
    case "sequence":
      return node.parts;
    default:
      return [];
  }
}

/** Whether a node is an expression in brackets. */
export function isGroup(node: SqlNode): node is SqlBracket {
  return (
    node.kind === "bracket" && node.opening === "(" && node.name === undefined && node.items.length === 1
  );
}

/** Returns an expression without the brackets around it. */
export function withoutBrackets(node: SqlNode): SqlNode {
  let inner = node;
  while (isGroup(inner)) inner = inner.items[0] as SqlNode;
  return inner;
}

/** Whether a node is an operation with one of some operators. */
export function isOperation(node: SqlNode | undefined, operators: ReadonlySet<string>): node is SqlOperation {
  return node?.kind === "operation" && operators.has(node.operator);
}

/** Returns the names of a possible column; undefined for any other node. */
export function pathOf(node: SqlNode): readonly SqlToken[] | undefined {
  if (node.kind === "path") return node.parts;
  return node.kind === "word" || (node.kind === "quoted" && !isText(node)) ? [node] : undefined;
}

/** Whether a node is a string or a hexadecimal string. */
export function isText(node: SqlNode): node is SqlToken {
  return node.kind === "quoted" && node.text.endsWith("'");
}

/** Returns the text of a constant as written, without spaces between its tokens; undefined for any other expression. */
export function constantOf(node: SqlNode | undefined): string | undefined {
  return (node && writtenOf(node)) || undefined;
}

function writtenOf(node: SqlNode): string | undefined {
  switch (node.kind) {
    case "missing":
      return "";
    case "number":
      return node.text;
    case "quoted":
      return node.text.startsWith("`") ? undefined : node.text;
    case "operation": {
      if (node.operator !== "-") return undefined;
      const [first, second] = node.operands.map(writtenOf);
      if (node.operands.length === 1) return first === undefined ? undefined : `-${first}`;
      return first === undefined || second === undefined ? undefined : `${first}-${second}`;
    }
    case "sequence": {
      const parts = node.parts.map(writtenOf);
      return parts.includes(undefined) ? undefined : parts.join("");
    }
    default:
      return undefined;
  }
}

/** How closely operators bind, as in the engine's parser (sqlparser 0.62). */
export const [NOT, IS, LIKE, COMPARE, SIGN] = [15, 17, 19, 20, 41];

/** Operators whose right side is a pattern. */
export const PATTERN_OPERATORS: ReadonlySet<string> = new Set(
  "like ilike rlike regexp".split(" ").concat("similar to"),
);

/** The operators that compare two operands. */
export const COMPARISONS: ReadonlySet<string> = new Set("= == != <> < <= > >=".split(" "));

/** Operators between two operands, and how closely they bind; AND and OR bind less closely than all of them. */
export const INFIX: ReadonlyMap<string, number> = new Map([
  ["is", IS],
  ...[...PATTERN_OPERATORS].map((word) => [word, LIKE] as const),
  ...[...COMPARISONS, "between", "in"].map((word) => [word, COMPARE] as const),
  ...["|", "<<", ">>"].map((symbol) => [symbol, 21] as const),
  ["^", 22],
  ["&", 23],
  ["xor", 24],
  ...["+", "-"].map((symbol) => [symbol, 30] as const),
  ...["*", "/", "%", "||"].map((symbol) => [symbol, 40] as const),
]);

/** Operators that NOT may precede. */
export const NEGATABLE = new Set(["in", "between", ...PATTERN_OPERATORS]);

/** Operators that no pass over a tree looks for. */
export const ARITHMETIC = new Set("+ - * / % | & ^ << >> xor".split(" "));

/** Words that end an operand without being operators between two. */
export const ENDS = new Set("and or as from then when else end escape".split(" "));
export const ENDS_OPERAND = new Set([...INFIX.keys(), ...ENDS, "not"]);

/** Tokens that may follow a pattern: the engine would take others for a part of it. */
export const PATTERN_ENDS = new Set(") , ] and or then when else end escape is as".split(" "));

/** A change of a part of a text; an insertion has its start as its end. */
export interface SqlEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Returns a text with changes of parts that do not overlap. Everything else stays as it is written.
 *
 * @param edits those at the same place in their order: insertions come first
 */
export function printSql(text: string, edits: readonly SqlEdit[]): string {
  if (edits.length === 0) return text;
  const pieces: string[] = [];
  let [done, last] = [0, ""];
  const add = (piece: string) => {
    pieces.push(piece);
    last = piece.at(-1) ?? last;
  };
  for (const { start, end, text: own } of edits.toSorted((a, b) => a.start - b.start)) {
    add(text.slice(done, start));
    // In `a OR-(1 + 1) = b`, a sign ends the word.
    if (IN_WORD.test(last) && IN_WORD.test(own.charAt(0))) add(" ");
    add(own);
    done = end;
  }
  add(text.slice(done));
  return pieces.join("");
}

const IN_WORD = /\w/;

/** A space that the engine's errors keep, by which they tell the brackets of {@link readToEnd} from a caller's. */
const MARK = "\t";
const BRACKETS = new RegExp(`\\(${MARK}|${MARK}\\)`, "g");

/**
 * Returns an expression that the engine reads to its end or refuses: it would read `a > 1 b = 2` as `a > 1`.
 *
 * @param expression a checked one, whose brackets are closed
 */
export function readToEnd(expression: string): string {
  return `(${MARK}${expression}${MARK})`;
}

/** Returns a text of the engine with the expression as the caller has written it. */
export function withoutBracketsAround(text: string): string {
  if (!text.includes(MARK)) return text;
  return text.replaceAll(BRACKETS, "").replace(/found: \)(?=\)?$)/, "found: EOF");
}
