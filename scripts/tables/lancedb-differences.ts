import { knownDifferences } from "../../test/clients/beside/differences.ts";
import { markdownTable } from "./markdown.ts";

/** The cases in which LanceDB's clients answer otherwise through a gateway than on a directory. */
export function lancedbDifferenceTable(): string {
  const rows = knownDifferences().map((row) => [row.client, row.kind, row.case, row.difference, row.reason]);
  return markdownTable(["Client", "Work", "Case", "Differs in", "Why"], rows);
}
