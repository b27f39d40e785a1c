import { METRICS } from "../../src/metrics/declarations.ts";
import { UPSTREAM_DECISIONS } from "../../src/namespace/decisions.ts";
import { markdownTable } from "./markdown.ts";

/** The metrics as in `src/metrics/declarations.ts`. */
export function metricsTable(): string {
  const rows = Object.values(METRICS).map(({ name, type, labels, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(", "),
    help,
  ]);
  return markdownTable(["Metric", "Type", "Labels", "What it counts"], rows);
}

/** The decisions as in `src/namespace/decisions.ts`. */
export function decisionsTable(): string {
  const rows = Object.entries(UPSTREAM_DECISIONS).map(([name, meaning]) => [`\`${name}\``, meaning]);
  return markdownTable(["Decision", "Meaning"], rows);
}
