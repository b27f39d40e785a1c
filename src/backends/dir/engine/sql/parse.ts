import { type Cursor, isCall, isName, missing, noteName, operation, together, wordAt } from "./cursor.ts";
import { invalidSql, isClosing, isOpening, type SqlToken } from "./tokens.ts";
import {
  COMPARE,
  ENDS,
  ENDS_OPERAND,
  INFIX,
  IS,
  LIKE,
  NEGATABLE,
  NOT,
  PATTERN_ENDS,
  PATTERN_OPERATORS,
  SIGN,
  type SqlBracket,
  type SqlCase,
  type SqlKnot,
  type SqlName,
  type SqlNode,
  type SqlTree,
} from "./tree.ts";

/*
 * A Pratt parser, in which operators bind as closely as in the engine's parser (sqlparser 0.62). Any tokens make a tree: what the gateway does not
 * understand becomes a sequence of its parts. The most tokens take 15 to 30 ms, in one step.
 */

const OF_CASE = new Set(["when", "then", "else"]);

/** Deeper than any expression that the bounds allow. */
const DEEPEST = 400;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Parses checked tokens of a text. @throws LanceError InvalidInput, for one that is too deep */
export function treeOf(text: string, tokens: readonly SqlToken[]): SqlTree {
  const cursor: Cursor = {
    tokens,
    at: 0,
    depth: 0,
    isInCase: false,
    nodes: [],
    names: [],
    hasGaps: false,
  };
  const root = together(cursor, items(cursor));
  const { nodes, names, hasGaps } = cursor;
  return { text, root, nodes: nodes.length > 1 ? nodes.sort(byPlace) : nodes, names, hasGaps };
}

function byPlace(a: SqlKnot, b: SqlKnot): number {
  return a.at - b.at;
}

/** Parses expressions up to the end of their bracket or of the text. */
function items(cursor: Cursor): SqlNode[] {
  const parsed = [conditions(cursor)];
  while (wordAt(cursor, cursor.at) === ",") {
    cursor.at++;
    parsed.push(conditions(cursor));
  }
  return parsed;
}

function conditions(cursor: Cursor): SqlNode {
  return joined(cursor, "or", conjunction);
}

function conjunction(cursor: Cursor): SqlNode {
  return joined(cursor, "and", operands);
}

/** Parses what a word joins, however often. */
function joined(cursor: Cursor, operator: "and" | "or", parse: (cursor: Cursor) => SqlNode): SqlNode {
  const first = parse(cursor);
  if (wordAt(cursor, cursor.at) !== operator) return first;
  const [joins, joints]: [SqlNode[], SqlToken[]] = [[first], []];
  while (wordAt(cursor, cursor.at) === operator) {
    joints.push(cursor.tokens[cursor.at++] as SqlToken);
    joins.push(parse(cursor));
  }
  return operation(cursor, joints[0] as SqlToken, joins, false, operator, joints);
}

/** Parses all operands and operators up to a comma, a joint, or the end of their bracket or part of a CASE. */
function operands(cursor: Cursor): SqlNode {
  const parts: SqlNode[] = [];
  while (!isEnd(cursor)) {
    if (ENDS.has(wordAt(cursor, cursor.at)) && !isCall(cursor, cursor.at)) {
      const token = cursor.tokens[cursor.at] as SqlToken;
      noteName(cursor, cursor.at++, token);
      parts.push(token);
    } else {
      parts.push(expression(cursor, 0));
    }
  }
  return parts.length === 0 ? missing(cursor) : together(cursor, parts);
}

function isEnd(cursor: Cursor): boolean {
  const { tokens, at, isInCase } = cursor;
  const token = tokens[at];
  if (token === undefined) return true;
  const { kind, word } = token;
  if (kind === "symbol") return word === "," || isClosing(word);
  return word === "and" || word === "or" || (isInCase && (word === "end" || OF_CASE.has(word)));
}

/** Parses operators that bind at least so closely, with their operands. */
function expression(cursor: Cursor, closeness: number): SqlNode {
  if (++cursor.depth > DEEPEST) {
    throw invalidSql(`its parts are more than ${DEEPEST} deep`, cursor.tokens[cursor.at]?.start);
  }
  let left = operand(cursor);
  for (;;) {
    const negated = wordAt(cursor, cursor.at) === "not";
    const at = negated ? cursor.at + 1 : cursor.at;
    const operator = operatorAt(cursor, at);
    const binding = INFIX.get(operator);
    if (binding === undefined || binding < closeness || (negated && !NEGATABLE.has(operator))) break;
    cursor.at = operator === "similar to" ? at + 2 : at + 1;
    left = infix(cursor, left, cursor.tokens[at] as SqlToken, negated, operator, binding);
  }
  cursor.depth--;
  return left;
}

/** Returns the operator at a place; any other word or symbol stays as it is. */
function operatorAt(cursor: Cursor, at: number): string {
  const word = wordAt(cursor, at);
  if (word === "similar" && wordAt(cursor, at + 1) === "to") return "similar to";
  return isCall(cursor, at) ? "" : word;
}

/** Parses what follows an operator between two operands. */
function infix(
  cursor: Cursor,
  left: SqlNode,
  token: SqlToken,
  negated: boolean,
  operator: string,
  binding: number,
): SqlNode {
  switch (operator) {
    case "is":
      return isCheck(cursor, left, token);
    case "in": {
      const list = wordAt(cursor, cursor.at) === "(" ? bracket(cursor) : expression(cursor, COMPARE + 1);
      return operation(cursor, token, [left, list], negated);
    }
    case "between": {
      const low = expression(cursor, COMPARE + 1);
      if (wordAt(cursor, cursor.at) === "and") cursor.at++;
      return operation(cursor, token, [left, low, expression(cursor, COMPARE + 1)], negated);
    }
    default: {
      const right = expression(cursor, binding + 1);
      if (binding !== LIKE) return operation(cursor, token, [left, right]);
      return operation(cursor, token, [left, ...pattern(cursor, right)], negated, operator);
    }
  }
}

/** Parses the end of IS [NOT] NULL and its like. */
function isCheck(cursor: Cursor, left: SqlNode, token: SqlToken): SqlNode {
  const negated = wordAt(cursor, cursor.at) === "not";
  if (negated) cursor.at++;
  const test = cursor.tokens[cursor.at];
  if (test?.word === "distinct") {
    cursor.at += wordAt(cursor, cursor.at + 1) === "from" ? 2 : 1;
    return operation(cursor, test, [left, expression(cursor, COMPARE + 1)], negated);
  }
  const isWord = test?.kind === "word" && !isCall(cursor, cursor.at);
  if (!isWord || ENDS_OPERAND.has(operatorAt(cursor, cursor.at)))
    return operation(cursor, token, [left, expression(cursor, IS + 1)], negated);
  noteName(cursor, cursor.at++, test);
  return operation(cursor, token, [left, test], negated);
}

/** Returns the right side of LIKE, as a sequence if more follows it, and its ESCAPE. */
function pattern(cursor: Cursor, right: SqlNode): SqlNode[] {
  const next = cursor.tokens[cursor.at];
  const ends = next === undefined || PATTERN_ENDS.has(next.word);
  const { start, end } = right;
  const whole: SqlNode = ends ? right : { kind: "sequence", parts: [right], start, end };
  if (next?.word !== "escape") return [whole];
  cursor.at++;
  return [whole, expression(cursor, LIKE + 1)];
}

/** Parses an operand with the operators before it. */
function operand(cursor: Cursor): SqlNode {
  const word = wordAt(cursor, cursor.at);
  if (word !== "not" && word !== "-" && word !== "+") return juxtaposed(cursor);
  const token = cursor.tokens[cursor.at++] as SqlToken;
  return operation(cursor, token, [expression(cursor, word === "not" ? NOT + 1 : SIGN)]);
}

/** Parses everything up to the next operator: usually a value, also a typed string, a path or an unknown syntax. */
function juxtaposed(cursor: Cursor): SqlNode {
  if (endsOperand(cursor)) {
    cursor.hasGaps = true;
    return missing(cursor);
  }
  const only = primary(cursor);
  if (endsOperand(cursor)) return only;
  const parts = [only];
  while (!endsOperand(cursor)) parts.push(primary(cursor));
  return together(cursor, parts);
}

function endsOperand(cursor: Cursor): boolean {
  return isEnd(cursor) || ENDS_OPERAND.has(operatorAt(cursor, cursor.at));
}

function primary(cursor: Cursor): SqlNode {
  const token = cursor.tokens[cursor.at] as SqlToken;
  if (isCall(cursor, cursor.at)) {
    cursor.at++;
    return bracket(cursor, token);
  }
  if (token.kind === "symbol" && isOpening(token.word)) return bracket(cursor);
  if (token.word === "case") return caseOf(cursor);
  const first = cursor.at++;
  if (!isName(token)) return token;
  const name = pathFrom(cursor, token);
  noteName(cursor, first, name);
  return name;
}

/** Parses the rest of a path. */
function pathFrom(cursor: Cursor, token: SqlToken): SqlName {
  const parts = [token];
  while (wordAt(cursor, cursor.at) === ".") {
    const name = cursor.tokens[cursor.at + 1];
    if (name === undefined || !isName(name) || isCall(cursor, cursor.at + 1)) break;
    if (PATTERN_OPERATORS.has(name.word)) break;
    parts.push(name);
    cursor.at += 2;
  }
  if (parts.length === 1) return token;
  return { kind: "path", parts, start: token.start, end: (parts.at(-1) as SqlToken).end };
}

/** Parses a bracket, which may have the arguments of a function. */
function bracket(cursor: Cursor, name?: SqlToken): SqlBracket {
  const { start: open, word: opening } = cursor.tokens[cursor.at++] as SqlToken;
  const next = cursor.tokens[cursor.at];
  const isQuery = opening === "(" && (next?.word === "select" || next?.word === "with");
  const start = name?.start ?? open;
  const node: Writable<SqlBracket> = {
    kind: "bracket",
    opening,
    name,
    items: [],
    isQuery,
    open,
    at: start,
    start,
    end: open,
  };
  cursor.nodes.push(node);
  const { isInCase } = cursor;
  cursor.isInCase = false;
  node.items = items(cursor);
  cursor.isInCase = isInCase;
  node.end = (cursor.tokens[cursor.at++] as SqlToken).end;
  return node;
}

/** Parses a CASE, with or without its END. */
function caseOf(cursor: Cursor): SqlCase {
  const { start, end } = cursor.tokens[cursor.at++] as SqlToken;
  const parts: SqlNode[] = [];
  const node: Writable<SqlCase> = { kind: "case", parts, at: start, start, end };
  cursor.nodes.push(node);
  const { isInCase } = cursor;
  cursor.isInCase = true;
  parts.push(conditions(cursor));
  for (; OF_CASE.has(wordAt(cursor, cursor.at)); parts.push(conditions(cursor))) cursor.at++;
  cursor.isInCase = isInCase;
  if (wordAt(cursor, cursor.at) === "end") cursor.at++;
  else cursor.hasGaps = true;
  node.end = (cursor.tokens[cursor.at - 1] as SqlToken).end;
  return node;
}
