import { invalidSql, isClosing, isOpening, type SqlToken } from "./tokens.ts";

/*
 * The engine walks the tree of an expression by recursion, on threads with a stack of 2 MiB, and a stack that is
 * too small ends the process. These bounds are below half of what it was seen to bear (docs/adr/0034).
 */

/** Maximum nesting of brackets. */
export const MAX_NESTING = 32;
/**
 * Maximum nesting of calls, CASE and INTERVAL, and dots of a path: the engine's parser may read what follows twice.
 */
export const MAX_CALLS = 12;
/** Maximum number of tokens on the path from the top of an expression to its deepest operand. */
export const MAX_CHAIN = 250;
/** Maximum number of conditions that AND and OR join; the engine balances them. */
export const MAX_CONDITIONS = 8000;
/** Maximum sum of the squares of all chains, which bounds the time of the engine's passes over them. */
const MAX_WORK = 1_000_000;

/** Words that join conditions. */
const JOINTS = new Set("and or".split(" "));
/** Words after which a bracket is not a call if an operand precedes them. */
const INFIX = new Set("and or in like ilike between to is from".split(" "));
const NESTING_WORDS = new Set(["case", "interval"]);
const LITERAL_WORDS = new Set(["null", "true", "false", "date", "timestamp"]);

/** Levels of the tree in a bracket: those of its own chain, and the most below them. */
interface Levels {
  chain: number;
  below: number;
}

/** An open bracket, and its contents so far. */
interface Frame {
  /** Whether it may consist of conditions that the engine balances. */
  group: boolean;
  /** Number of calls around it, and of everything else that doubles the time. */
  readonly calls: number;
  /** Number of CASE and INTERVAL in it. */
  nestingWords: number;
  /** Number of dots of the current path. */
  dots: number;
  /** Levels of its whole contents, and, in case it is balanced, those of the current condition. */
  readonly all: Levels;
  condition: Levels;
  /** Levels of the deepest earlier condition. */
  deepest: number;
  /** Number of BETWEEN that wait for their AND. */
  betweens: number;
  /** Tokens of the current list item, and whether all are part of a literal. */
  item: number;
  literal: boolean;
}

/** Follows the tokens of an expression, and refuses it as soon as it costs too much. */
export interface Bounds {
  /**
   * Counts a token, after the next one has been read.
   *
   * @throws LanceError InvalidInput
   */
  take(tokens: readonly SqlToken[], index: number): void;
  /**
   * Ends the text.
   *
   * @throws LanceError InvalidInput
   */
  end(): void;
}

/**
 * Creates the check that an expression exhausts neither the engine's stack nor its time.
 *
 * Each token counts as a level of the tree, except for those that are known to add none: list items that are
 * literals, and conditions that AND and OR join where the engine balances them.
 */
export function createBounds(): Bounds {
  const top = openFrame(true, 0);
  const frames = [top];
  let [work, conditions, lastStart] = [0, 1, 0];

  function open(frame: Frame, tokens: readonly SqlToken[], index: number): void {
    const [token, before, further] = [tokens[index] as SqlToken, tokens[index - 1], tokens[index - 2]];
    const calls = doublings(frame) + (isCall(before, further) ? 1 : 0);
    checkNesting(frames.length, calls, token);
    const group = frame.group && token.text === "(" && isGroupStart(before);
    frames.push(openFrame(group, calls));
  }
  function join(frame: Frame, { start }: SqlToken): void {
    work += frame.condition.chain ** 2;
    if (++conditions > MAX_CONDITIONS) {
      throw invalidSql(`AND and OR join more than ${MAX_CONDITIONS} conditions`, start);
    }
    endCondition(frame);
  }
  function follow(frame: Frame, token: SqlToken, word: string, before: SqlToken | undefined): void {
    if (token.kind === "symbol" && token.text === ".") frame.dots++;
    else if (token.kind === "symbol" || before?.text !== ".") frame.dots = 0;
    count(frame, token, word);
    checkNesting(frames.length - 1, doublings(frame), token);
  }
  return {
    take(tokens, index) {
      const token = tokens[index] as SqlToken;
      const frame = frames.at(-1) as Frame;
      const word = token.kind === "word" ? token.word : "";
      const symbol = token.kind === "symbol" ? token.text : "";
      if (isOpening(symbol)) {
        open(frame, tokens, index);
      } else if (isClosing(symbol)) {
        frames.pop();
        work += frame.condition.chain ** 2;
        closeInto(frames.at(-1) as Frame, frame, isGroupEnd(tokens[index + 1]));
      } else if (symbol === ",") {
        endItem(frame);
      } else if (JOINTS.has(word) && frame.betweens === 0) {
        join(frame, token);
      } else {
        follow(frame, token, word, tokens[index - 1]);
      }
      const { condition } = frames.at(-1) as Frame;
      if (condition.chain + condition.below > MAX_CHAIN) throw tooLong(token.start);
      if (work > MAX_WORK) throw invalidSql("its chains of operators are too many and too long", token.start);
      lastStart = token.start;
    },
    end() {
      if (levelsOf(top) > MAX_CHAIN) throw tooLong(lastStart);
    },
  };
}

function openFrame(group: boolean, calls: number): Frame {
  return {
    group,
    calls,
    nestingWords: 0,
    dots: 0,
    all: { chain: 0, below: 0 },
    condition: { chain: 0, below: 0 },
    deepest: 0,
    betweens: 0,
    item: 0,
    literal: true,
  };
}

/** Returns how often the engine's parser may double its time at this place. */
function doublings({ calls, nestingWords, dots }: Frame): number {
  return calls + nestingWords + dots;
}

/** Returns the levels of the contents of a bracket. */
function levelsOf({ group, all, condition, deepest }: Frame): number {
  return group ? Math.max(deepest, condition.chain + condition.below) : all.chain + all.below;
}

/** Adds a closed bracket to the one around it, which may still prove to be unbalanced. */
function closeInto(outer: Frame, frame: Frame, ends: boolean): void {
  const unbalanced = levelsOf({ ...frame, group: false });
  const levels = ends ? levelsOf(frame) : unbalanced;
  outer.condition.below = Math.max(outer.condition.below, levels);
  outer.all.below = Math.max(outer.all.below, unbalanced);
  add(outer, 2);
  outer.literal = false;
}

function add(frame: Frame, tokens: number): void {
  frame.all.chain += tokens;
  frame.condition.chain += tokens;
  frame.item += tokens;
}

/** An item that is a literal adds no levels; a bracket with several items is not a condition. */
function endItem(frame: Frame): void {
  if (frame.literal && frame.item <= 2) add(frame, -frame.item);
  frame.group = false;
  frame.item = 0;
  frame.literal = true;
}

function endCondition(frame: Frame): void {
  const { chain, below } = frame.condition;
  frame.deepest = Math.max(frame.deepest, chain + below);
  frame.condition = { chain: 0, below: 0 };
  frame.all.chain++;
  frame.literal = false;
}

function count(frame: Frame, { kind, text }: SqlToken, word: string): void {
  add(frame, 1);
  if (word === "between") frame.betweens++;
  if (word === "and") frame.betweens--;
  if (NESTING_WORDS.has(word)) {
    frame.nestingWords++;
    frame.group = false;
  }
  const constant = kind === "number" || (kind === "quoted" && !text.startsWith("`"));
  if (!constant && text !== "-" && !LITERAL_WORDS.has(word)) frame.literal = false;
}

function isGroupStart(before: SqlToken | undefined): boolean {
  return before === undefined || before.text === "(" || /^(?:and|or|not)$/i.test(before.text);
}

function isGroupEnd(next: SqlToken | undefined): boolean {
  return next === undefined || next.text === ")" || /^(?:and|or)$/i.test(next.text);
}

/** Whether a bracket may belong to the preceding word. */
function isCall(before: SqlToken | undefined, further: SqlToken | undefined): boolean {
  if (before === undefined || before.kind === "symbol" || before.kind === "number") return false;
  const infix = before.kind === "word" && INFIX.has(before.word);
  return !infix || further === undefined || (further.kind === "symbol" && !isClosing(further.text));
}

function checkNesting(brackets: number, calls: number, { start }: SqlToken): void {
  if (brackets > MAX_NESTING)
    throw invalidSql(`it has more than ${MAX_NESTING} brackets within each other`, start);
  if (calls > MAX_CALLS)
    throw invalidSql(`it has more than ${MAX_CALLS} calls within each other, or dots in a path`, start);
}

function tooLong(start: number): Error {
  return invalidSql(
    `an operand lies below more than ${MAX_CHAIN} names, values and operators; AND, OR and lists of values do not count`,
    start,
  );
}
