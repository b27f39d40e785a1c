import type { Migrated } from "../../../backends/dir/maintenance/migrate.ts";
import { readTable } from "../../../config/layers.ts";
import type { OptionTable } from "../../../config/option-spec.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { jsonText } from "../../terminal/terminal-text.ts";
import { JSON_OPTION, ROOT_OPTIONS, readRoot, withCatalog } from "../catalog.ts";
import type { CommandDefinition } from "../command.ts";
import { textTable } from "../text-table.ts";

const OPTIONS = {
  dryRun: {
    flag: "dry-run",
    help: "List the tables to register, and write nothing.",
    fallback: "false",
    parse: parseSwitch,
  },
  json: JSON_OPTION,
} as const satisfies OptionTable;

/** `lance-gateway migrate`: adds rows to the manifest for tables that only have directories. */
export const migrate: CommandDefinition = {
  groups: [
    { heading: "Options", options: OPTIONS, environment: false },
    { heading: "Catalog", options: ROOT_OPTIONS, environment: true },
  ],
  async run({ layers }, environment) {
    const options = readTable(OPTIONS, layers);
    const root = await readRoot(layers, environment);
    const maintenance = await import("../../../backends/dir/maintenance/migrate.ts");
    const tables = await withCatalog(root, !options.dryRun, ({ context }) =>
      maintenance.migrate(context, options.dryRun),
    );
    const answer = { dry_run: options.dryRun, tables };
    process.stdout.write(options.json ? jsonText(answer) : tableOf(tables, options.dryRun));
    return 0;
  },
};

function tableOf(tables: readonly Migrated[], dryRun: boolean): string {
  if (tables.length === 0) return "There is no table without a row.\n";
  const rows = tables.map(({ table, location, outcome, reason }) => [
    reason === undefined ? (dryRun ? "would register" : outcome) : `${outcome}: ${reason}`,
    table,
    location,
  ]);
  const registered = tables.filter(({ outcome }) => outcome === "registered").length;
  const summary = `${registered} of ${tables.length} ${dryRun ? "to register" : "registered"}`;
  return `${textTable([["ACTION", "TABLE", "LOCATION"], ...rows])}\n${summary}\n`;
}
