import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { isClosing, isOpening, type SqlToken } from "./tokens.ts";

const EQUAL = new Set(["=", "==", "!=", "<>", "like", "ilike"]);
const OPERATORS = new Set("< > <= >= is in between similar rlike regexp xor escape distinct".split(" "));
const CONSTANTS = new Set("null true false".split(" "));

/** Functions that look a value up in an array, unless that is a column. */
const HAS = new Set(["array_has", "array_contains", "list_has", "list_contains"]);

/** A list, or a comparison that may become part of one. */
export interface Member {
  /** Index of the token that compares. */
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

/** The conditions in an open bracket. */
interface Frame {
  readonly decides: boolean;
  /** Number of BETWEEN that wait for their AND. */
  betweens: number;
  /** The condition that is being read: its first token, the operators in it, and the indices of those that compare. */
  first: number;
  operators: number;
  compared: number[];
}

/** The conditions of an expression. */
interface Conditions {
  readonly members: readonly Member[];
  /** The AND and OR that join them, by their indices. */
  readonly joints: readonly number[];
  /** Whether the expression is a NOT of all of them. */
  readonly isNegated: boolean;
}

/** Finds what the engine may take for lists, in steps. */
export function* readConditions(tokens: readonly SqlToken[]): Steps<Conditions> {
  const [members, joints]: [Member[], number[]] = [[], []];
  const closings = closingsOf(tokens);
  const isNegated = wordOf(tokens[0]) === "not" && closings.get(1) === tokens.length - 1;
  const frames: Frame[] = [openFrame(isNegated ? 1 : 0, true)];
  const endCondition = (frame: Frame, end: number) => {
    for (const at of frame.compared) {
      const list = EQUAL.has(wordOf(tokens[at])) ? undefined : closings.get(at + 1);
      const member = memberOf(tokens, { at, list, end }, frame);
      if (member !== undefined) members.push(member);
    }
    Object.assign(frame, { first: end + 1, operators: 0, compared: [] });
  };
  for (const [at, token] of tokens.entries()) {
    if (at % ITEMS_PER_STEP === 0) yield;
    const frame = frames.at(-1) as Frame;
    const symbol = token.kind === "symbol" ? token.text : "";
    const word = wordOf(token);
    if (isOpening(symbol)) {
      const next = tokens[(closings.get(at) as number) + 1];
      const isGroup = symbol === "(" && at === frame.first && endsCondition(next);
      frames.push(openFrame(at + 1, frame.decides && isGroup));
    } else if (isClosing(symbol)) {
      endCondition(frame, at);
      frames.pop();
    } else if (symbol === ",") {
      endCondition(frame, at);
    } else if (word === "and" && frame.betweens > 0) {
      frame.betweens--;
    } else if (word === "and" || word === "or") {
      endCondition(frame, at);
      joints.push(at);
    } else if (EQUAL.has(word) || OPERATORS.has(word)) {
      frame.operators++;
      if (word === "between") frame.betweens++;
      if (EQUAL.has(word) || (word === "in" && tokens[at + 1]?.text === "(")) frame.compared.push(at);
    } else if (
      HAS.has(word) &&
      tokens[at + 1]?.text === "(" &&
      columnIn(tokens, at + 2, at + 3) === undefined
    ) {
      frame.compared.push(at);
    }
  }
  endCondition(frames[0] as Frame, tokens.length);
  return { members, joints, isNegated };
}

function openFrame(first: number, decides: boolean): Frame {
  return { decides, betweens: 0, first, operators: 0, compared: [] };
}

/**
 * Returns the member that an operator makes; undefined if it compares two columns.
 *
 * @param at index of the operator
 * @param list index of the last bracket of its list; undefined if it has none
 * @param end index of the token after its condition
 */
function memberOf(
  tokens: readonly SqlToken[],
  { at, list, end }: { at: number; list: number | undefined; end: number },
  frame: Frame,
): Member | undefined {
  if (HAS.has(wordOf(tokens[at])))
    return { at, halves: 2, column: undefined, negated: false, plain: false, decides: false };
  const begins = wordOf(tokens[frame.first]) === "not" ? frame.first + 1 : frame.first;
  const negated = wordOf(tokens[at - 1]) === "not";
  const left = columnIn(tokens, begins, negated ? at - 1 : at);
  const decides = frame.decides && frame.operators === 1 && begins === frame.first;
  if (list !== undefined) {
    const plain = areConstants(tokens, at + 2, list);
    return { at, halves: 2, column: left, negated, plain, decides: decides && list + 1 === end };
  }
  const right = columnIn(tokens, at + 1, end);
  if (left !== undefined && right !== undefined) return undefined;
  return { at, halves: 1, column: left ?? right, negated, plain: true, decides };
}

/** Returns the last name of the path that some tokens are; undefined if they are anything else. */
function columnIn(tokens: readonly SqlToken[], from: number, to: number): string | undefined {
  let name: string | undefined;
  for (let at = from; at < to; at++) {
    const token = tokens[at] as SqlToken;
    const isDot = token.kind === "symbol" && token.text === ".";
    if ((at - from) % 2 === 1 ? !isDot : !isName(token)) return undefined;
    if (!isDot) name = token.text.replaceAll("`", "").toLowerCase();
  }
  return name;
}

function isName(token: SqlToken): boolean {
  if (token.kind === "quoted") return token.text.startsWith("`");
  return token.kind === "word" && !CONSTANTS.has(wordOf(token));
}

function areConstants(tokens: readonly SqlToken[], from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const { kind, text } = tokens[at] as SqlToken;
    const isConstant = kind === "number" || (kind === "quoted" && !text.startsWith("`"));
    if (!isConstant && text !== "," && text !== "-") return false;
  }
  return true;
}

/** Returns the bracket that closes each opening one, by their indices. */
export function closingsOf(tokens: readonly SqlToken[]): Map<number, number> {
  const closings = new Map<number, number>();
  const open: number[] = [];
  for (const [at, { kind, text }] of tokens.entries()) {
    if (kind !== "symbol") continue;
    if (isOpening(text)) open.push(at);
    else if (isClosing(text)) closings.set(open.pop() as number, at);
  }
  return closings;
}

function endsCondition(token: SqlToken | undefined): boolean {
  return token === undefined || token.text === ")" || ["and", "or"].includes(wordOf(token));
}

/** Returns a word in lower case, and a symbol as it is; an empty text for anything else. */
export function wordOf(token: SqlToken | undefined): string {
  if (token?.kind === "symbol") return token.text;
  return token?.kind === "word" ? token.text.toLowerCase() : "";
}
