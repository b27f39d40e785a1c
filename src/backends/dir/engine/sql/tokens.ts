import { LanceError } from "../../../../namespace/errors.ts";
import { atOnce, ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";

/** A token of SQL text, cut as the engine's own lexer cuts it. */
export interface SqlToken {
  readonly kind: "word" | "quoted" | "number" | "symbol";
  readonly text: string;
  /** A word in lower case, or a symbol; an empty string for any other token. */
  readonly word: string;
  /** Start and end in the text. */
  readonly start: number;
  readonly end: number;
  /** Number of open brackets around it; a bracket itself counts as outside. */
  readonly depth: number;
}

/** Longest text in UTF-16 units, and maximum number of tokens: reading them takes less than 50 ms. */
export const MAX_SQL_LENGTH = 1024 * 1024;
export const MAX_SQL_TOKENS = 100_000;

/** Spaces of the engine's lexer: U+0085 is one of them, and U+FEFF is not. */
const SPACE = /\p{White_Space}+/uy;
const WORD = /[\p{Alphabetic}_@#][\p{Alphabetic}\d_$@#]*/uy;
const NUMBER = /0x[\da-fA-F]*|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?L?/y;
const JOINS_NUMBER = /[\p{Alphabetic}_$@#]/uy;

/** Returns which ASCII characters a pattern matches, by their codes: most texts have no others. */
const ascii = (pattern: RegExp) =>
  Array.from({ length: 128 }, (_, code) => pattern.test(String.fromCharCode(code)));
const IS_SPACE = ascii(/\s/);
const IS_DIGIT = ascii(/\d/);
const IN_WORD = ascii(/[\w$@#]/);
const BEGINS_PAIR = ascii(/[:|<>!=/-]/);
const [DOT, DOLLAR, AT, HASH] = [".", "$", "@", "#"].map((character) => character.charCodeAt(0));
const IS_QUOTE = ascii(/['"`]/);

/** Symbols of two characters; any other symbol is a single character. */
const PAIRS = new Set(["::", "||", "<=", ">=", "<>", "!=", "==", "<<", ">>", "=>"]);
/** The engine takes the next character for a part of such a word, even a quote or a bracket. */
const MARKS = /^[@#]+$/;
const COMMENTS = new Set(["--", "/*"]);

/** Prefixes with which the engine's lexer starts a string with rules of its own. */
const STRING_PREFIXES = new Set("b e n nq q r u x".split(" "));
const HEX_STRING = /'[\da-fA-F]*'(?!')/y;

const CLOSING: Readonly<Record<string, string | undefined>> = {
  __proto__: null as never,
  "(": ")",
  "[": "]",
  "{": "}",
};

/**
 * Checks a token, after the next one has been read or the text has ended. An error that it throws ends the reading.
 */
export type TokenCheck = (tokens: readonly SqlToken[], index: number) => void;

/**
 * Splits SQL text into tokens; see {@link tokenSteps}.
 *
 * @throws LanceError InvalidInput
 */
export function tokenizeSql(text: string): SqlToken[] {
  return atOnce(tokenSteps(text));
}

/**
 * Splits SQL text into tokens, in steps of a few hundred.
 *
 * It refuses texts where this lexer and the engine's could differ: a difference would let a text pass whose operators
 * were not counted.
 *
 * @param check called while the text is read: reading stops when it refuses the text
 * The steps throw LanceError InvalidInput for text that is too long, for comments, for placeholders, for strings with a
 * prefix, and for quotes and brackets that do not match.
 */
export function* tokenSteps(text: string, check?: TokenCheck): Steps<SqlToken[]> {
  if (text.length > MAX_SQL_LENGTH) {
    throw invalidSql(`it has more than ${MAX_SQL_LENGTH} characters`, MAX_SQL_LENGTH);
  }
  const tokens: SqlToken[] = [];
  const open: string[] = [];
  for (let at = endOfSpace(text, 0); at < text.length; at = endOfSpace(text, at)) {
    if (tokens.length === MAX_SQL_TOKENS) throw invalidSql(`it has more than ${MAX_SQL_TOKENS} tokens`, at);
    const token = tokenAt(text, at, open);
    tokens.push(token);
    if (tokens.length > 1) check?.(tokens, tokens.length - 2);
    if (tokens.length % ITEMS_PER_STEP === 0) yield;
    at = token.end;
  }
  if (open.length > 0) throw invalidSql(`a ${open.at(-1)} is missing`, text.length);
  if (tokens.length > 0) check?.(tokens, tokens.length - 1);
  return tokens;
}

/** Returns a name without its quotes. */
export function nameOf({ kind, text }: Pick<SqlToken, "kind" | "text">): string {
  if (kind !== "quoted") return text;
  const quote = text.charAt(0);
  return text.slice(1, -1).replaceAll(quote + quote, quote);
}

/** Whether a symbol opens a bracket. */
export function isOpening(symbol: string): boolean {
  return symbol === "(" || symbol === "[" || symbol === "{";
}

/** Whether a symbol closes a bracket. */
export function isClosing(symbol: string): boolean {
  return symbol === ")" || symbol === "]" || symbol === "}";
}

/** Returns the error for refused SQL text, with the position of the character, counted from 1. */
export function invalidSql(reason: string, at?: number): LanceError {
  const place = at === undefined ? "" : ` (at character ${at + 1})`;
  return new LanceError("InvalidInput", `the SQL text is refused: ${reason}${place}`);
}

/** Reads the token at a position. */
function tokenAt(text: string, start: number, open: string[]): SqlToken {
  let kind = kindAt(text, start);
  let end = endOfToken(kind, text, start);
  const hex = kind === "word" ? endOfPrefixed(text, start, end) : undefined;
  if (hex !== undefined) [kind, end] = ["quoted", hex];
  const token = text.slice(start, end);
  if (kind === "symbol" && isClosing(token) && open.pop() !== token) {
    throw invalidSql(`there is a ${token} too many`, start);
  }
  const depth = open.length;
  const closing = kind === "symbol" ? CLOSING[token] : undefined;
  if (closing !== undefined) open.push(closing);
  const word = kind === "word" ? keywordOf(token, text, start) : kind === "symbol" ? token : "";
  return { kind, text: token, word, start, end, depth };
}

/** Returns a word in lower case, of which the engine's keywords know ASCII alone: `\u212a` is not a k. */
function keywordOf(token: string, text: string, start: number): string {
  const code = token.charCodeAt(0);
  const isMarked = code === AT || code === HASH;
  if (isMarked && (MARKS.test(token) || text.charAt(start - 1) === "<"))
    throw invalidSql(`${token.charAt(0)} must begin a name, and follow no <`, start);
  if (endOfAscii(IN_WORD, token, 0) === token.length) return token.toLowerCase();
  return token.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function kindAt(text: string, at: number): SqlToken["kind"] {
  const code = text.charCodeAt(at);
  if (code >= 128) return endOf(WORD, text, at) > at ? "word" : "symbol";
  if (IS_QUOTE[code]) return "quoted";
  if (IS_DIGIT[code] || (code === DOT && IS_DIGIT[text.charCodeAt(at + 1)])) return "number";
  return IN_WORD[code] && code !== DOLLAR ? "word" : "symbol";
}

function endOfToken(kind: SqlToken["kind"], text: string, at: number): number {
  if (kind === "word") return endOfWord(text, at);
  if (kind === "number") return endOfNumber(text, at);
  return kind === "quoted" ? endOfQuoted(text, at) : endOfSymbol(text, at);
}

function endOfWord(text: string, at: number): number {
  const end = endOfAscii(IN_WORD, text, at);
  return text.charCodeAt(end) < 128 || end === text.length ? end : endOf(WORD, text, at);
}

function endOfSymbol(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === DOLLAR) throw invalidSql("it must not have placeholders such as $", at);
  if (!BEGINS_PAIR[code]) return at + ((text.codePointAt(at) as number) > 0xffff ? 2 : 1);
  const pair = text.slice(at, at + 2);
  if (COMMENTS.has(pair)) throw invalidSql("it must not have comments", at);
  return at + (PAIRS.has(pair) ? 2 : 1);
}

/** Returns the end of a quoted text, in which a doubled quote is a quote. */
function endOfQuoted(text: string, at: number): number {
  const quote = text.charAt(at);
  for (let from = at + 1; ; from += 2) {
    from = text.indexOf(quote, from);
    if (from < 0) throw invalidSql("a quote is not closed", at);
    if (text.charAt(from + 1) !== quote) return from + 1;
  }
}

/** The engine reads `1or` as two tokens; other readers do not, so this lexer refuses it. */
function endOfNumber(text: string, at: number): number {
  const plain = endOfAscii(IS_DIGIT, text, at);
  const after = text.charCodeAt(plain);
  if (plain === text.length || (after < 128 && !IN_WORD[after] && after !== DOT)) return plain;
  const end = endOf(NUMBER, text, at);
  if (endOf(JOINS_NUMBER, text, end) > end) throw invalidSql("a number must end before a word begins", end);
  return end;
}

/** Returns the end of a string with a prefix: only `X'…'` of hexadecimal digits; undefined for a plain word. */
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

function endOfSpace(text: string, at: number): number {
  const end = endOfAscii(IS_SPACE, text, at);
  return text.charCodeAt(end) < 128 || end === text.length ? end : endOf(SPACE, text, end);
}

/** Skips ASCII characters. */
function endOfAscii(taken: readonly boolean[], text: string, at: number): number {
  let end = at;
  while (end < text.length && taken[text.charCodeAt(end)]) end++;
  return end;
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
