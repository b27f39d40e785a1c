// Writes what is generated from the sources into README.md, docs/ (tables, and the schema of the configuration file) and deploy/ (the dashboard), and checks the links and the prose of all pages.
// With --check it compares the generated parts instead of writing them.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configurationSchema } from "../src/config/schema.ts";
import { dashboardJson } from "./dashboard/render.ts";
import { checkProse } from "./prose/check.ts";
import { readNavigation } from "./site/navigation.ts";
import { collectPages } from "./site/pages.ts";
import { changeShown } from "./tables/changes.ts";
import { clientTable } from "./tables/clients.ts";
import { commandReference } from "./tables/commands.ts";
import { configurationTable } from "./tables/configuration.ts";
import { contractReference } from "./tables/contract.ts";
import { errorTable } from "./tables/errors.ts";
import { importTable } from "./tables/imports.ts";
import { lancedbDifferenceTable } from "./tables/lancedb-differences.ts";
import { lancedbMethodTable } from "./tables/lancedb-methods.ts";
import { replaceBetweenMarkers } from "./tables/markers.ts";
import { decisionsTable, metricsTable, upkeepOutcomesTable } from "./tables/metrics.ts";
import { operationTable } from "./tables/operations.ts";
import { performancePages } from "./tables/performance.ts";
import { recordList } from "./tables/records.ts";

const root = join(import.meta.dirname, "..");
const check = process.argv.includes("--check");

/** Each page and the tables in it, by the name in its markers. */
const pages: Readonly<Record<string, Readonly<Record<string, () => string | Promise<string>>>>> = {
  "README.md": { clients: clientTable, operations: operationTable },
  "docs/architecture.md": { imports: importTable },
  "docs/cli.md": { commands: commandReference },
  "CONTRIBUTING.md": {
    operation: changeShown("operation"),
    error: changeShown("error"),
    dialect: changeShown("dialect"),
    option: changeShown("option"),
    backend: changeShown("backend"),
  },
  "docs/contract.md": { contract: contractReference },
  "docs/errors.md": { errors: errorTable },
  "docs/lancedb-clients.md": { methods: lancedbMethodTable, differences: lancedbDifferenceTable },
  "docs/observability.md": {
    metrics: metricsTable,
    "upkeep-outcomes": upkeepOutcomesTable,
    decisions: decisionsTable,
  },
  ...performancePages,
  "docs/configuration.md": { configuration: configurationTable },
  "docs/adr/README.md": { records: recordList },
};

/** Files that are generated as a whole. */
const files: Readonly<Record<string, () => string>> = {
  "docs/configuration.schema.json": () => `${JSON.stringify(configurationSchema(), null, 2)}\n`,
  "deploy/grafana/lance-gateway.json": dashboardJson,
};

const stale: string[] = [];

function write(page: string, before: string, after: string): void {
  if (after === before) return;
  stale.push(page);
  if (!check) writeFileSync(join(root, page), after);
}
for (const [page, tables] of Object.entries(pages)) {
  const before = readFileSync(join(root, page), "utf8");
  let after = before;
  for (const [name, make] of Object.entries(tables))
    after = replaceBetweenMarkers(page, after, name, await make());
  write(page, before, after);
}
for (const [file, make] of Object.entries(files)) {
  const known = existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : "";
  write(file, known, make());
}
if (check && stale.length > 0) {
  console.error(`Out of date: ${stale.join(", ")}. Run: npm run docs`);
  process.exit(1);
}

// A page that the start page does not list is missing on the site, too.
readNavigation(root, collectPages(root).pages.keys());

const findings = checkProse(root);
for (const { file, line, message } of findings) console.error(`${file}:${line}: ${message}`);
if (findings.length > 0) process.exit(1);
