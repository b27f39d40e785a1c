import { NEVER } from "../joined-lists/in-lists.ts";

/*
 * The engine looks conditions up in indices, and computes wrong rows in two cases. When it negates a result and joins it
 * with that of a zone map or a Bloom filter, which only exclude rows, the other rows of the second one are missing:
 * `k != 1 OR s = 'a'` with a B-tree of k and a Bloom filter of s. And a negated `IS TRUE` or `IS FALSE` with an index of
 * the column lacks the rows with a null.
 *
 * It looks nothing up for a condition that is joined by OR with one that no index answers. The other one is false for each row, which the
 * optimizer does not know. Within `(…) IS TRUE`, the engine looks nothing up either, but it does not convert a number to the type of its
 * column there: no 32-bit float equals the 64-bit 0.3.
 */

const NOT = /\bnot\b/i;
const TRUTH = /\bis\s+(?:not\s+)?(?:true|false)\b/i;
const NEGATION = /\bnot\b|!=|<>|\bfalse\b/i;
const CONJUNCTION = /\b(?:and|or)\b/i;

/** Types of indices, in the words of the format, whose results only exclude rows. */
const EXCLUDING: ReadonlySet<string | undefined> = new Set([undefined, "ZoneMap", "BloomFilter"]);

/**
 * Returns a condition that the engine answers correctly with the indices of a table.
 *
 * @param exact the condition as the engine gets it otherwise
 * @param filter the condition as the caller wrote it
 * @param indexTypes returns the types of the table's indices; undefined if they are not known
 */
export async function soundWithIndices(
  exact: string,
  filter: string,
  indexTypes: () => Promise<readonly (string | undefined)[] | undefined>,
): Promise<string> {
  if (NOT.test(filter) && TRUTH.test(filter)) return rowByRow(exact);
  if (!NEGATION.test(filter) || !CONJUNCTION.test(filter)) return exact;
  const types = await indexTypes();
  return types?.every((type) => !EXCLUDING.has(type)) ? exact : rowByRow(exact);
}

function rowByRow(filter: string): string {
  return `(${filter}) OR ${NEVER}`;
}
