import type { SqlName, SqlTree } from "../../sql/tree.ts";
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

const NOT_EQUAL = new Set(["!=", "<>"]);
const CONJUNCTIONS = new Set(["and", "or", "between"]);
const TRUTHS = new Set(["true", "false"]);

/** Types of indices, in the words of the format, whose results only exclude rows. */
const EXCLUDING: ReadonlySet<string | undefined> = new Set([undefined, "ZoneMap", "BloomFilter"]);

/**
 * Returns a condition that the engine answers correctly with the indices of a table.
 *
 * @param exact the condition as the engine gets it otherwise
 * @param tree the condition as the caller wrote it
 * @param indexTypes returns the types of the table's indices; undefined if they are not known
 */
export async function soundWithIndices(
  exact: string,
  tree: SqlTree,
  indexTypes: () => Promise<readonly (string | undefined)[] | undefined>,
): Promise<string> {
  const { isNegated, asksForTruth, differs, conjoins } = factsOf(tree);
  if (isNegated && asksForTruth) return rowByRow(exact);
  if (!conjoins || !(isNegated || differs || tree.names.some(isFalse))) return exact;
  const types = await indexTypes();
  return types?.every((type) => !EXCLUDING.has(type)) ? exact : rowByRow(exact);
}

function rowByRow(filter: string): string {
  return `(${filter}) OR ${NEVER}`;
}

function isFalse(name: SqlName): boolean {
  return name.kind === "word" && name.word === "false";
}

function factsOf({ nodes }: SqlTree) {
  const facts = { isNegated: false, asksForTruth: false, differs: false, conjoins: false };
  for (const node of nodes) {
    if (node.kind !== "operation") continue;
    const { operator, negated, operands } = node;
    facts.isNegated ||= negated || operator === "not";
    facts.differs ||= NOT_EQUAL.has(operator);
    facts.conjoins ||= CONJUNCTIONS.has(operator);
    facts.asksForTruth ||= operator === "is" && operands[1]?.kind === "word" && TRUTHS.has(operands[1].word);
  }
  return facts;
}
