import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A case in which the gateway's answer is not the local library's. */
export interface FoundDifference {
  readonly case: string;
  /** In what they differ, such as `rows`, `order of rows`, `schema` or `words of the error`. */
  readonly difference: string;
  readonly local: string;
  readonly remote: string;
}

/** The comparisons of a kind of work. */
export interface KindResult {
  readonly kind: string;
  readonly cases: readonly string[];
  readonly differences: readonly FoundDifference[];
}

/** A difference that is known, with its reason. */
export interface KnownDifference {
  readonly client: "Python" | "Node";
  readonly kind: string;
  readonly case: string;
  readonly difference: string;
  readonly reason: string;
}

/** Returns all known differences. */
export function knownDifferences(): readonly KnownDifference[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, "..", "differences.json"), "utf8"));
}

/**
 * Holds the comparisons of a client against the list.
 *
 * @throws AssertionError for a difference that is not in the list, and for one in the list that does not exist
 */
export function checkDifferences(client: KnownDifference["client"], results: readonly KindResult[]): void {
  const known = knownDifferences().filter((row) => row.client === client);
  for (const { kind, case: name, reason } of known) assert.ok(reason, `${kind}, ${name}: without a reason`);
  const found = results.flatMap(({ kind, differences }) => differences.map((row) => ({ kind, ...row })));
  const inWords = (row: Pick<KnownDifference, "kind" | "case" | "difference">) =>
    `${row.kind}: ${row.case}: ${row.difference}`;
  const texts = found.map((row) => `${inWords(row)}\n  local  ${row.local}\n  remote ${row.remote}`);
  assert.deepEqual(found.map(inWords).sort(), known.map(inWords).sort(), texts.join("\n"));
}
