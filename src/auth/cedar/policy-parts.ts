/** A part of a text of policies: whole policies, and what stands between them. */
export interface PolicyPart {
  readonly text: string;
  /** Number of lines that end before it. */
  readonly line: number;
}

/** Length of a part, in characters: the library parses it in about 10 ms. */
const PART_LENGTH = 64 * 1024;

/**
 * Splits a text of policies behind the semicolons that end them, because the library parses a text in a single step. A text with
 * a mistake is split, too; its parts have the mistake.
 *
 * @param length least length of a part, in characters. Default: 64 Ki.
 */
export function* policyParts(text: string, length = PART_LENGTH): Iterable<PolicyPart> {
  const special = /[;"]|\/\//g;
  let [start, line] = [0, 0];
  for (let found = special.exec(text); found !== null; found = special.exec(text)) {
    const end = special.lastIndex;
    if (found[0] === "//") special.lastIndex = endOfLine(text, end);
    else if (found[0] === '"') special.lastIndex = endOfString(text, end);
    else if (end - start >= length) {
      const part = { text: text.slice(start, end), line };
      yield part;
      start = end;
      line += part.text.split("\n").length - 1;
    }
  }
  yield { text: text.slice(start), line };
}

function endOfLine(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at === -1 ? text.length : at;
}

function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at += 1;
  }
  return text.length;
}
