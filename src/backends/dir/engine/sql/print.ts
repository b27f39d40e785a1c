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
  let [printed, done] = ["", 0];
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    printed += text.slice(done, edit.start);
    // In `a OR-(1 + 1) = b`, a sign ends the word.
    if (/\w/.test(printed.slice(-1)) && /^\w/.test(edit.text)) printed += " ";
    printed += edit.text;
    done = edit.end;
  }
  return printed + text.slice(done);
}
