const WHITE = /[ \t\n\r]*/y;
const PLAIN = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
const HEX = /[0-9a-fA-F]{4}/y;
const ESCAPES = '"\\/bfnrt';

/** Tokens that may come next. After an opening bracket, its closing one may come as well. */
type Expected = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma or close" | "end";

/**
 * Returns the position at which a text stops being JSON, in UTF-16 units: the start of the first token that does not
 * fit, or the text's length if it breaks off. The engine's own message has a position only for some failures.
 */
export function jsonErrorPosition(text: string): number {
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    at = after(WHITE, text, at) ?? at;
    if (at >= text.length) return text.length;
    const next = step(at);
    if (next === undefined) return at;
    at = next;
  }

  /** Returns the position after the token, or undefined if it does not fit here. */
  function step(position: number): number | undefined {
    const token = text[position];
    switch (expected) {
      case "end":
        return undefined;
      case "colon":
        expected = "value";
        return token === ":" ? position + 1 : undefined;
      case "comma or close":
        if (token !== ",") return close(token, position);
        expected = open.at(-1) === "{" ? "key" : "value";
        return position + 1;
      case "key or }":
      case "key":
        if (token === "}" && expected === "key or }") return close(token, position);
        expected = "colon";
        return afterString(text, position);
      default:
        if (token === "]" && expected === "value or ]") return close(token, position);
        if (token === "{" || token === "[") {
          open.push(token);
          expected = token === "{" ? "key or }" : "value or ]";
          return position + 1;
        }
        expected = open.length === 0 ? "end" : "comma or close";
        return afterString(text, position) ?? after(PLAIN, text, position);
    }
  }

  function close(token: string | undefined, position: number): number | undefined {
    if (token !== (open.pop() === "{" ? "}" : "]")) return undefined;
    expected = open.length === 0 ? "end" : "comma or close";
    return position + 1;
  }
}

function after(pattern: RegExp, text: string, position: number): number | undefined {
  pattern.lastIndex = position;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function afterString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at] as string;
    if (char === '"') return at + 1;
    if (char < " ") return undefined;
    if (char !== "\\") continue;
    const escaped = text[++at] ?? "";
    if (escaped === "u") {
      if (after(HEX, text, at + 1) === undefined) return undefined;
      at += 4;
    } else if (escaped === "" || !ESCAPES.includes(escaped)) {
      return undefined;
    }
  }
  return undefined;
}
