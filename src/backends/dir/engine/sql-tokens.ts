import { LanceError } from "../../../namespace/errors.ts";

/** A piece of SQL text, cut as the engine's own lexer cuts it. */
export interface SqlToken {
  readonly kind: "word" | "quoted" | "number" | "symbol";
  readonly text: string;
  /** Where it begins and ends in the text. */
  readonly start: number;
  readonly end: number;
  /** How many brackets are open around it; a bracket itself counts as outside. */
  readonly depth: number;
}

/** The longest text in UTF-16 units, and the most tokens: reading them takes less than 50 ms. */
export const MAX_SQL_LENGTH = 1024 * 1024;
export const MAX_SQL_TOKENS = 100_000;

const SPACE = /\s+/y;
const WORD = /[\p{Alphabetic}_@#][\p{Alphabetic}\d_$@#]*/uy;
const NUMBER = /0x[\da-fA-F]*|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?L?/y;
const JOINS_NUMBER = /[\p{Alphabetic}_$@#]/uy;

/** Symbols of two characters; any other symbol is one character. */
const PAIRS = new Set(["::", "||", "<=", ">=", "<>", "!=", "==", "<<", ">>", "=>"]);

/** What the engine's lexer reads as the beginning of a string with rules of its own. */
const STRING_PREFIXES = new Set("b e n nq q r u x".split(" "));
const HEX_STRING = /'[\da-fA-F]*'(?!')/y;

const CLOSING: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

/**
 * Splits SQL text into tokens.
 *
 * Where this lexer and the engine's could differ, the text is refused: a difference would let a text pass whose
 * operators nobody has counted.
 *
 * @throws LanceError InvalidInput for text that is too long, for comments, for placeholders, for strings with a
 * prefix, and for quotes and brackets that do not match
 */
export function tokenizeSql(text: string): SqlToken[] {
  if (text.length > MAX_SQL_LENGTH) {
    throw invalidSql(`it has more than ${MAX_SQL_LENGTH} characters`, MAX_SQL_LENGTH);
  }
  const tokens: SqlToken[] = [];
  const open: string[] = [];
  let at = endOfSpace(text, 0);
  while (at < text.length) {
    if (tokens.length === MAX_SQL_TOKENS) throw invalidSql(`it has more than ${MAX_SQL_TOKENS} tokens`, at);
    const token = tokenAt(text, at, open.length);
    const { text: symbol, kind, end } = token;
    if (kind === "symbol" && /^[)\]}]$/.test(symbol)) {
      if (open.pop() !== symbol) throw invalidSql(`there is a ${symbol} too many`, at);
      tokens.push({ ...token, depth: open.length });
    } else {
      tokens.push(token);
      const closing = kind === "symbol" ? CLOSING[symbol] : undefined;
      if (closing !== undefined) open.push(closing);
    }
    at = endOfSpace(text, end);
  }
  if (open.length > 0) throw invalidSql(`a ${open.at(-1)} is missing`, text.length);
  return tokens;
}

/** Says that SQL text is refused, and at which of its characters, counted from 1. */
export function invalidSql(reason: string, at?: number): LanceError {
  const place = at === undefined ? "" : ` (at character ${at + 1})`;
  return new LanceError("InvalidInput", `the SQL text is refused: ${reason}${place}`);
}

function tokenAt(text: string, at: number, depth: number): SqlToken {
  const make = (kind: SqlToken["kind"], end: number): SqlToken => ({
    kind,
    text: text.slice(at, end),
    start: at,
    end,
    depth,
  });
  const first = text.charAt(at);
  const pair = text.slice(at, at + 2);
  if (pair === "--" || pair === "/*") throw invalidSql("it must not have comments", at);
  if (first === "'" || first === '"' || first === "`") return make("quoted", endOfQuoted(text, at, first));
  if (isDigit(first) || (first === "." && isDigit(text.charAt(at + 1)))) {
    return make("number", endOfNumber(text, at));
  }
  const word = endOf(WORD, text, at);
  if (word > at) {
    const hex = endOfPrefixed(text, at, word);
    return hex === undefined ? make("word", word) : make("quoted", hex);
  }
  if (first === "$") throw invalidSql("it must not have placeholders such as $", at);
  if (PAIRS.has(pair)) return make("symbol", at + 2);
  return make("symbol", at + ((text.codePointAt(at) as number) > 0xffff ? 2 : 1));
}

/** The end of a quoted text, in which a doubled quote stands for itself. */
function endOfQuoted(text: string, at: number, quote: string): number {
  for (let from = at + 1; ; from += 2) {
    from = text.indexOf(quote, from);
    if (from < 0) throw invalidSql("a quote is not closed", at);
    if (text.charAt(from + 1) !== quote) return from + 1;
  }
}

/** The engine reads `1or` as two tokens; other readers do not, so neither is right here. */
function endOfNumber(text: string, at: number): number {
  const end = endOf(NUMBER, text, at);
  if (endOf(JOINS_NUMBER, text, end) > end) throw invalidSql("a number must end before a word begins", end);
  return end;
}

/** The end of a string with a prefix: `X'…'` of hexadecimal digits alone; undefined for a plain word. */
function endOfPrefixed(text: string, at: number, end: number): number | undefined {
  const word = text.slice(at, end);
  if (word.includes("$") && /[^\0-\x7f]/.test(word)) {
    throw invalidSql("a name with $ and letters outside ASCII must stand between backticks", at);
  }
  const quote = text.charAt(end);
  if ((quote !== "'" && quote !== '"') || word.length > 2) return undefined;
  if (!STRING_PREFIXES.has(word.toLowerCase())) return undefined;
  const hex = word.toLowerCase() === "x" ? endOf(HEX_STRING, text, end) : end;
  if (hex === end) throw invalidSql(`a string must not have the prefix ${word}`, at);
  return hex;
}

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9";
}

function endOfSpace(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code > 32 && code < 127) return at;
  return endOf(SPACE, text, at);
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
