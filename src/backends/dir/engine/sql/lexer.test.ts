import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import { tokenizeSql } from "./tokens.ts";

/** A token as the engine reads it: a model of its lexer, sqlparser 0.62 in Lance's dialect. */
interface EngineToken {
  readonly kind: "word" | "string" | "comment" | "other";
  readonly start: number;
  readonly end: number;
}

const WORD = /[\p{Alphabetic}_#@][\p{Alphabetic}0-9@$#_]*/uy;
const NUMBER = /0x[0-9a-fA-F]*|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?L?/y;
const COMMENT = /--[^\n]*\n?|\/\*[\s\S]*?\*\//y;
const DOLLAR = /\$([\p{Alphabetic}0-9_]*)\$[\s\S]*?\$\1\$|\$[\p{Alphabetic}0-9_]*/uy;
const SPACE = /\p{White_Space}/uy;

/** Returns the engine's tokens; undefined if its lexer fails. */
function engineTokens(text: string): EngineToken[] | undefined {
  const tokens: EngineToken[] = [];
  const end = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at;
    return pattern.test(text) ? pattern.lastIndex : undefined;
  };
  const quoted = (at: number, escapes: boolean): number | undefined => {
    const quote = text.charAt(at);
    for (let i = at + 1; i < text.length; i++) {
      if (escapes && text.charAt(i) === "\\") i++;
      else if (text.charAt(i) === quote && text.charAt(i + 1) === quote) i++;
      else if (text.charAt(i) === quote) return i + 1;
    }
    return undefined;
  };
  for (let at = 0; at < text.length; ) {
    const [first, second] = [text.charAt(at), text.charAt(at + 1)];
    let [kind, to]: [EngineToken["kind"] | "space", number | undefined] = ["space", end(SPACE, at)];
    if (to === undefined) [kind, to] = ["comment", end(COMMENT, at)];
    if (to === undefined && text.startsWith("/*", at)) return undefined;
    const prefixed =
      (/[bBrR]/.test(first) && /['"]/.test(second)) || (/[nNxX]/.test(first) && second === "'");
    if (to === undefined && (prefixed || /['"`]/.test(first))) {
      [kind, to] = ["string", quoted(prefixed ? at + 1 : at, /[xX]/.test(first))];
      if (to === undefined) return undefined;
    }
    if (to === undefined) [kind, to] = ["other", end(NUMBER, at)];
    if (to === undefined) [kind, to] = ["word", end(WORD, at)];
    // A word of marks alone takes the character behind it, whatever that is.
    if (kind === "word" && to !== undefined && /^[@#]+$/.test(text.slice(at, to))) to++;
    if (to === undefined && first === "$") [kind, to] = ["string", end(DOLLAR, at)];
    if (to === undefined)
      [kind, to] = ["other", at + String.fromCodePoint(text.codePointAt(at) as number).length];
    if (kind !== "space") tokens.push({ kind, start: at, end: to });
    at = to;
  }
  return tokens;
}

const PIECES = [
  ..."'\"`\\$()[]{},;:.+-*/|=<>!~^&%#@?_ \t\n",
  ..."abxXeEnNrRuUqQ019é²٣ß",
  "\u0301",
  "\u00a0",
  "\u0085",
  "\ufeff",
  "\u{1d7d8}",
  "\u{10400}",
  "''",
  "x'",
  "X'0a'",
  "U&'",
  "E'",
  "$$",
  "$a$",
  "--",
  "/*",
  "*/",
  "0x",
  "1e5",
  "1.",
  ".5",
  "or",
  " and ",
  "is true",
  "lpad(",
  "::",
  "||",
];

test("a text that passes has the tokens that the engine finds in it", () => {
  const texts = fc.array(fc.constantFrom(...PIECES), { maxLength: 24 }).map((pieces) => pieces.join(""));
  let accepted = 0;
  fc.assert(
    fc.property(texts, (text) => {
      let tokens: ReturnType<typeof tokenizeSql>;
      try {
        tokens = tokenizeSql(text);
      } catch (error) {
        assert.ok(isLanceError(error, "InvalidInput"));
        return;
      }
      accepted++;
      const engine = engineTokens(text);
      if (engine === undefined) return;
      const spans = (of: readonly { start: number; end: number }[]) =>
        of.map(({ start, end }) => `${start}-${end}`);
      const strings = engine.filter(({ kind }) => kind === "string");
      assert.deepEqual(spans(tokens.filter(({ kind }) => kind === "quoted")), spans(strings));
      assert.ok(!engine.some(({ kind }) => kind === "comment"));
      const ends = new Map(tokens.map((token) => [token.end, token]));
      for (const { kind, start, end } of engine) {
        const found = ends.get(end);
        if (kind !== "word") continue;
        // A name of the engine may begin with characters that no name has here; it is then no function's name.
        assert.ok(found !== undefined, `the word ${text.slice(start, end)} ends inside of a token`);
        assert.ok(found.start >= start, `the word ${text.slice(start, end)} begins inside of a token`);
      }
    }),
    { numRuns: Number(process.env["SQL_LEXER_RUNS"] ?? 20_000) },
  );
  assert.ok(accepted > 500, `${accepted} texts passed`);
});
