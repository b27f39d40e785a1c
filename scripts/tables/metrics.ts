import { UPKEEP_OUTCOMES, UPSTREAM_DECISIONS } from "../../src/namespace/figures.ts";
import { METRICS } from "../../src/observability/metrics/declarations.ts";
import { markdownTable } from "./markdown.ts";

/** The metrics as in `src/observability/metrics/declarations.ts`. */
export function metricsTable(): string {
  const rows = Object.values(METRICS).map(({ name, type, labels, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(", "),
    help,
  ]);
  return markdownTable(["Metric", "Type", "Labels", "What it counts"], rows);
}

/** The decisions as in `src/namespace/figures.ts`. */
export const decisionsTable = (): string => meaningsTable("Decision", UPSTREAM_DECISIONS);

/** The outcomes of upkeep as in `src/namespace/figures.ts`. */
export const upkeepOutcomesTable = (): string => meaningsTable("Outcome", UPKEEP_OUTCOMES);

function meaningsTable(heading: string, meanings: Readonly<Record<string, string>>): string {
  const rows = Object.entries(meanings).map(([name, meaning]) => [`\`${name}\``, meaning]);
  return markdownTable([heading, "Meaning"], rows);
}
