/** A change of a part of a text; an insertion has its start as its end. */
export interface SqlEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Returns a text with changes of parts that do not overlap. Everything else stays as it is written.
 *
 * @param edits those at the same place in their order: insertions come first
 */
export function printSql(text: string, edits: readonly SqlEdit[]): string {
  if (edits.length === 0) return text;
  const pieces: string[] = [];
  let [done, last] = [0, ""];
  const add = (piece: string) => {
    pieces.push(piece);
    last = piece.at(-1) ?? last;
  };
  for (const { start, end, text: own } of edits.toSorted((a, b) => a.start - b.start)) {
    add(text.slice(done, start));
    // In `a OR-(1 + 1) = b`, a sign ends the word.
    if (IN_WORD.test(last) && IN_WORD.test(own.charAt(0))) add(" ");
    add(own);
    done = end;
  }
  add(text.slice(done));
  return pieces.join("");
}

const IN_WORD = /\w/;

/** A space that the engine's errors keep, by which they tell the brackets of {@link readToEnd} from a caller's. */
const MARK = "\t";
const BRACKETS = new RegExp(`\\(${MARK}|${MARK}\\)`, "g");

/**
 * Returns an expression that the engine reads to its end or refuses: it would read `a > 1 b = 2` as `a > 1`.
 *
 * @param expression a checked one, whose brackets are closed
 */
export function readToEnd(expression: string): string {
  return `(${MARK}${expression}${MARK})`;
}

/** Returns a text of the engine with the expression as the caller has written it. */
export function withoutBracketsAround(text: string): string {
  if (!text.includes(MARK)) return text;
  return text.replaceAll(BRACKETS, "").replace(/found: \)(?=\)?$)/, "found: EOF");
}
