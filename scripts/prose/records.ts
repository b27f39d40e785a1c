import { basename, matchesGlob } from "node:path";
import type { Finding } from "./lint.ts";

/** The decision records. */
const RECORDS = "docs/adr/[0-9]*.md";

/** Maximum words of a record. */
const MOST_WORDS = 600;

/** A reference to a record by its number: `ADR 7` or `adr/0007`. */
const REFERENCE = /\bADR (?<number>\d+)|\badr\/(?<file>\d{4})/g;

/** Returns whether a file is a decision record that has too many words. */
export function checkRecordLength(file: string, text: string): Finding[] {
  const words = text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
  if (!matchesGlob(file, RECORDS) || words <= MOST_WORDS) return [];
  return [{ file, line: 1, message: `has ${words} words; a record has at most ${MOST_WORDS}` }];
}

/** Returns the references of a file to decision records that the repository lacks. */
export function checkRecordReferences(file: string, text: string, repository: readonly string[]): Finding[] {
  const records = new Set(
    repository
      .filter((known) => matchesGlob(known, RECORDS))
      .map((known) => Number.parseInt(basename(known), 10)),
  );
  return [...text.matchAll(REFERENCE)]
    .filter(({ groups }) => !records.has(Number(groups?.["number"] ?? groups?.["file"])))
    .map(({ 0: reference, index }) => ({
      file,
      line: text.slice(0, index).split("\n").length,
      message: `refers to ${reference}, a record that does not exist`,
    }));
}
