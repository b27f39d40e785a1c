import type { Migrated } from "../../backends/dir/maintenance/migrate.ts";
import { type OptionSpec, parseSwitch } from "../../config/option-spec.ts";
import { CATALOG_FLAGS, CATALOG_OPTIONS, JSON_OPTION, withCatalog } from "./catalog.ts";
import { type Command, readOptions } from "./command.ts";
import { textTable } from "./text-table.ts";

const OPTIONS = {
  ...CATALOG_OPTIONS,
  dryRun: {
    flag: "dry-run",
    help: "Says what it would register, and writes nothing.",
    fallback: "false",
    parse: parseSwitch,
  },
  json: JSON_OPTION,
} as const satisfies Record<string, OptionSpec>;

/** `lance-gateway migrate`: gives tables that only their directories tell of rows in the manifest. */
export const migrate: Command = {
  summary: "register the tables of a version-1 directory in its manifest",
  options: OPTIONS,
  async run(args, environment) {
    const options = readOptions(OPTIONS, CATALOG_FLAGS, args, environment);
    const maintenance = await import("../../backends/dir/maintenance/migrate.ts");
    const tables = await withCatalog(options, !options.dryRun, ({ context }) =>
      maintenance.migrate(context, options.dryRun),
    );
    const answer = { dry_run: options.dryRun, tables };
    process.stdout.write(
      options.json ? `${JSON.stringify(answer, null, 2)}\n` : tableOf(tables, options.dryRun),
    );
    return 0;
  },
};

function tableOf(tables: readonly Migrated[], dryRun: boolean): string {
  if (tables.length === 0) return "Every table has its row already.\n";
  const rows = tables.map(({ table, location, outcome, reason }) => [
    reason === undefined ? (dryRun ? "would register" : outcome) : `${outcome}: ${reason}`,
    table,
    location,
  ]);
  const registered = tables.filter(({ outcome }) => outcome === "registered").length;
  const summary = `${registered} of ${tables.length} ${dryRun ? "to register" : "registered"}`;
  return `${textTable([["ACTION", "TABLE", "LOCATION"], ...rows])}\n${summary}\n`;
}
