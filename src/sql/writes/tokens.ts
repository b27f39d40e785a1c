import { LanceError } from "../../namespace/errors.ts";
import { behindSpaces, UNICODE_SPACES } from "../statement-text.ts";

/** A part of a statement's head. */
export interface Token {
  /** A word is a name without quotes, or a keyword. */
  readonly kind: "word" | "quoted" | "string" | "number" | "mark" | "end";
  /** The word, the quoted name or the string without its quotes, the number or the mark. */
  readonly text: string;
  /** Place of the first character, and of the one behind the last. */
  readonly start: number;
  readonly end: number;
}

const WORD = new RegExp(
  `[[A-Za-z_\\u0080-\\u{10ffff}]--[${UNICODE_SPACES}]][[\\w$\\u0080-\\u{10ffff}]--[${UNICODE_SPACES}]]*`,
  "vy",
);
const INVISIBLE = /[\p{White_Space}\p{Cc}\p{Cf}]/u;
const QUOTED = /"(?:[^"]|"")+"/y;
const STRING = /'(?:[^']|'')*'/y;
const NUMBER = /\d+/y;
const MARK = /[().,;[\]=<>*]/y;

/** Reads the tokens of a statement from its begin on, one by one. What follows the head is read by DuckDB alone. */
export class TokenReader {
  readonly #statement: string;
  #next: Token;

  constructor(statement: string) {
    this.#statement = statement;
    this.#next = this.#read(0);
  }

  /** The next token, which stays the next one. */
  get next(): Token {
    return this.#next;
  }

  /** Returns the next token, and passes it. */
  take(): Token {
    const taken = this.#next;
    if (taken.kind !== "end") this.#next = this.#read(taken.end);
    return taken;
  }

  /** Whether words or marks are next, in any case of letters. */
  isNext(...texts: readonly string[]): boolean {
    const first = this.#next;
    if (!isWord(first, texts[0] ?? "")) return false;
    const isNext = texts.every((text) => isWord(this.take(), text));
    this.#next = first;
    return isNext;
  }

  /** Passes words or marks if they are next. */
  accept(...texts: readonly string[]): boolean {
    if (!this.isNext(...texts)) return false;
    for (const _ of texts) this.take();
    return true;
  }

  /** @throws LanceError InvalidInput if other words or marks are next */
  expect(...texts: readonly string[]): void {
    for (const text of texts) if (!this.accept(text)) throw this.unexpected(text);
  }

  /** Passes a name. @throws LanceError InvalidInput if something else is next */
  name(what: string): string {
    const { kind, text } = this.#next;
    if (kind !== "word" && kind !== "quoted") throw this.unexpected(what);
    this.take();
    return text;
  }

  /** Passes the semicolon that may end a statement. @throws LanceError if more follows */
  end(): void {
    this.accept(";");
    if (this.#next.kind !== "end") throw this.unexpected("the end of the statement");
  }

  unexpected(wanted: string): LanceError {
    const { kind, text, start } = this.#next;
    const found = kind === "end" ? "the end" : `"${text}"`;
    return this.#refused(start, `${wanted} is expected, and ${found} is there`);
  }

  #refused(place: number, reason: string): LanceError {
    const at = positionAt(this.#statement, place);
    return new LanceError("InvalidInput", `the statement does not parse at position ${at}: ${reason}`);
  }

  #read(from: number): Token {
    const start = behindSpaces(this.#statement, from);
    if (this.#statement.startsWith("/*", start)) throw this.#refused(start, "the comment has no end");
    const rest = (pattern: RegExp) => {
      pattern.lastIndex = start;
      return pattern.exec(this.#statement)?.[0];
    };
    const kinds = { word: WORD, quoted: QUOTED, string: STRING, number: NUMBER, mark: MARK } as const;
    for (const [kind, pattern] of Object.entries(kinds) as [keyof typeof kinds, RegExp][]) {
      const found = rest(pattern);
      if (found === undefined) continue;
      // It would make another word of a keyword without a trace, and so a condition of a name.
      if (kind === "word" && INVISIBLE.test(found))
        throw this.#refused(start, "a word without quotes has an invisible character");
      return { kind, text: textOf(kind, found), start, end: start + found.length };
    }
    if (start >= this.#statement.length) return { kind: "end", text: "", start, end: start };
    // A mark that no head has; the parser of the head refuses it, or leaves it to DuckDB.
    return { kind: "mark", text: this.#statement[start] as string, start, end: start + 1 };
  }
}

function textOf(kind: Token["kind"], found: string): string {
  if (kind !== "quoted" && kind !== "string") return found;
  const quote = found.charAt(0);
  return found.slice(1, -1).replaceAll(quote + quote, quote);
}

/** Whether a token is a keyword or a mark. A quoted name is neither. */
export function isWord({ kind, text }: Token, word: string): boolean {
  return (kind === "word" || kind === "mark") && text.toUpperCase() === word.toUpperCase();
}

/** Returns the position of a place as errors of DuckDB tell it: in bytes, from 1 on. */
export function positionAt(statement: string, place: number): number {
  return Buffer.byteLength(statement.slice(0, place)) + 1;
}
