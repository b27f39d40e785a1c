import { LanceError } from "../../../namespace/errors.ts";

/** A piece of SQL text. */
export interface SqlToken {
  readonly kind: "word" | "quoted" | "number" | "symbol";
  readonly text: string;
  /** Where it begins and ends in the text. */
  readonly start: number;
  readonly end: number;
  /** How many brackets are open around it; a bracket itself counts as outside. */
  readonly depth: number;
}

const SPACE = /\s+/y;
const COMMENT = /--|\/\*/y;

/** Each kind of token, by what it looks like. Whatever is left is a symbol of one character. */
const KINDS: readonly (readonly [kind: SqlToken["kind"], pattern: RegExp])[] = [
  ["quoted", /'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`/y],
  ["number", /(?:\d[\w.]*|\.\d\w*)(?:(?<=[eE])[+-]\d+)?/y],
  ["word", /[\p{L}_][\p{L}\p{N}_$]*/uy],
  ["symbol", /::|[\s\S]/uy],
];

const CLOSING: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

/**
 * Splits SQL text into tokens.
 *
 * @throws LanceError InvalidInput for comments, and for quotes and brackets that do not match
 */
export function tokenizeSql(text: string): SqlToken[] {
  const tokens: SqlToken[] = [];
  const open: string[] = [];
  for (let at = skip(SPACE, text, 0); at < text.length; at = skip(SPACE, text, at)) {
    if (matchAt(COMMENT, text, at) !== undefined) throw invalid("it must not have comments");
    const token = tokenAt(text, at, open.length);
    if (token.kind === "symbol") {
      if (/['"`]/.test(token.text)) throw invalid("a quote is not closed");
      const closes = /[)\]}]/.test(token.text);
      if (closes && open.pop() !== token.text) throw invalid(`there is a ${token.text} too many`);
      tokens.push(closes ? { ...token, depth: open.length } : token);
      const closing = CLOSING[token.text];
      if (closing !== undefined) open.push(closing);
    } else {
      tokens.push(token);
    }
    at = token.end;
  }
  if (open.length > 0) throw invalid(`a ${open.at(-1)} is missing`);
  return tokens;
}

/** Words after which an operand comes; behind any other word, one that begins a clause begins one. */
const OPERATORS = new Set(
  "and or not like ilike in is between then when else case escape div distinct similar to".split(" "),
);

const CLAUSES = new Set(
  "from where group order having limit offset union intersect except minus fetch window qualify into as join".split(
    " ",
  ),
);

/**
 * Checks that a text is one expression: the engine reads the first one and ignores what follows, so that
 * `a, b`, `a; more` and `a LIMIT 5` would quietly mean `a`.
 *
 * @throws LanceError InvalidInput
 */
export function checkExpression(text: string): void {
  const tokens = tokenizeSql(text);
  for (const [i, token] of tokens.entries()) {
    const previous = tokens[i - 1];
    const outside = token.depth === 0;
    if (token.text === ";") throw invalid("it must be one expression, without a semicolon");
    if (token.text === "," && outside) throw invalid("it must be one expression, not several");
    if (isPlaceholder(token, tokens[i + 1]))
      throw invalid(`it must not have placeholders such as ${token.text}`);
    if (outside && isWord(token, CLAUSES) && previous !== undefined && endsOperand(previous)) {
      throw invalid(`it must be one expression, without ${token.text.toUpperCase()}`);
    }
  }
}

/** Whether a token is one of some words, in lower case. */
function isWord(token: SqlToken | undefined, words: ReadonlySet<string>): boolean {
  return token?.kind === "word" && words.has(token.text.toLowerCase());
}

function endsOperand(token: SqlToken): boolean {
  if (token.kind === "symbol") return /[)\]}]/.test(token.text);
  return !isWord(token, OPERATORS);
}

/** `?`, `$1` and `:name`; the engine has no values for them. */
function isPlaceholder({ kind, text, end }: SqlToken, next: SqlToken | undefined): boolean {
  if (kind !== "symbol") return false;
  return text === "?" || text === "$" || (text === ":" && next?.start === end && next.kind !== "symbol");
}

function tokenAt(text: string, at: number, depth: number): SqlToken {
  for (const [kind, pattern] of KINDS) {
    const match = matchAt(pattern, text, at);
    if (match !== undefined) return { kind, text: match, start: at, end: at + match.length, depth };
  }
  throw invalid("it cannot be read");
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function skip(pattern: RegExp, text: string, at: number): number {
  return at + (matchAt(pattern, text, at)?.length ?? 0);
}

function invalid(reason: string): LanceError {
  return new LanceError("InvalidInput", `the SQL text is refused: ${reason}`);
}
