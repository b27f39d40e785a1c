import type { ComposedBackend } from "../../../backends/composed/index.ts";
import type { OpenedDirectory } from "../../../backends/dir/open-directory.ts";
import type { Optimized, OptimizedState } from "../../../backends/dir/upkeep/optimize-now.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { readTable } from "../../../config/layers.ts";
import { type OptionTable, type OptionValues, UsageError } from "../../../config/option-spec.ts";
import { ROWS_OPTIONS } from "../../../config/options/foreign-catalogs.ts";
import type { ServeOptions } from "../../../config/options/groups.ts";
import { parseAge, parseChoice, parseDuration, parseSwitch } from "../../../config/parsers.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { placeOf } from "../../place.ts";
import { confirm, YES_OPTION } from "../../terminal/confirm.ts";
import { jsonText } from "../../terminal/terminal-text.ts";
import {
  JSON_OPTION,
  PLACE_OPTIONS,
  ROOT_OPTIONS,
  readPlace,
  requireDirectory,
  withCatalog,
  withNamespace,
} from "../catalog.ts";
import type { CommandDefinition } from "../command.ts";
import { sizeText, textTable } from "../text-table.ts";

const OPTIONS = {
  retention: {
    flag: "retention",
    value: "AGE",
    help: "Age from which on versions are pruned, such as 90m, 12h or 7d; at least a minute. Default: the property of the table, or 7d.",
    parse: parseAge,
  },
  dryRun: {
    flag: "dry-run",
    help: "Show what there is to do, and write nothing.",
    fallback: "false",
    parse: parseSwitch,
  },
  wait: {
    flag: "wait",
    value: "TIME",
    help: "Longest wait for a table on which another process works, such as 30s or 5m.",
    fallback: "2m",
    parse: parseDuration,
  },
  engine: {
    flag: "engine",
    value: "embedded|ray",
    help: "Place where fragments are joined: this process, or the Ray cluster of a running gateway of the catalog (docs/how-to/jobs-on-ray.md).",
    fallback: "embedded",
    parse: parseChoice(["embedded", "ray"]),
  },
  yes: { ...YES_OPTION, needs: { flag: "dry-run", isNot: ["true"] } },
  json: JSON_OPTION,
} as const satisfies OptionTable;

/** `lance-gateway optimize`: looks after tables once, as a gateway does in the background. */
export const optimize: CommandDefinition = {
  operands: "[TABLE...]",
  groups: [
    { heading: "Options", options: OPTIONS, environment: false },
    {
      heading: "Catalog",
      options: { ...ROOT_OPTIONS, ...PLACE_OPTIONS, ...ROWS_OPTIONS },
      environment: true,
    },
  ],
  async run({ operands, layers }, environment) {
    const options = readTable(OPTIONS, layers);
    const connection = await readPlace(layers, environment);
    const isForeign = connection.rows === "here";
    const place = isForeign ? placeOf(connection) : requireDirectory(connection).root;
    if (isForeign && options.engine === "ray")
      throw new UsageError("--engine ray is for directories; with --rows here, this process does the work");
    if (!options.dryRun && !options.yes) {
      const age = options.retention === undefined ? "their retention, 7 days by default," : "--retention";
      await confirm(`Remove the versions of tables in ${place} that are older than ${age} for good`);
    }
    const tables = operands.length === 0 ? undefined : operands.map(parsePath);
    const results = isForeign
      ? await optimizeForeign(connection, options, tables)
      : await withCatalog(connection, !options.dryRun, (directory) => optimizeIn(directory, options, tables));
    process.stdout.write(options.json ? jsonOf(results, options.dryRun) : tableOf(results, options.dryRun));
    return results.some(({ outcome }) => outcome === "failed") ? 1 : 0;
  },
};

async function optimizeIn(
  { context }: OpenedDirectory,
  { retention: retentionMs, dryRun, wait: waitMs, engine }: OptionValues<typeof OPTIONS>,
  tables: readonly ReturnType<typeof parsePath>[] | undefined,
): Promise<Optimized[]> {
  const { optimizeTables } = await import("../../../backends/dir/upkeep/optimize-now.ts");
  const { createUpkeepLeases } = await import("../../../backends/dir/upkeep/lease.ts");
  const leases = createUpkeepLeases(context.layout.baseKey, context.store, context.clock);
  const results: Optimized[] = [];
  const options = { tables, retentionMs, dryRun, waitMs, leases, onCluster: engine === "ray" };
  for await (const result of optimizeTables(context, options)) results.push(result);
  return results;
}

/** Looks after the tables of another catalog, with the rights of this process at that catalog. */
async function optimizeForeign(
  connection: ServeOptions,
  { retention: retentionMs, dryRun, wait: waitMs }: OptionValues<typeof OPTIONS>,
  named: readonly Identifier[] | undefined,
): Promise<Optimized[]> {
  const { orReason } = await import("../../../backends/dir/upkeep/optimize-now.ts");
  const results: Optimized[] = [];
  await withNamespace(connection, "change", async ({ namespace, backend }) => {
    // That of a connection with `--rows here`.
    const rows = backend as ComposedBackend;
    for await (const table of named ?? tablesBelow(namespace, [])) {
      const isNamed = named !== undefined;
      const work = () => rows.optimize(table, { retentionMs, dryRun, waitMs, isNamed });
      results.push({ table, ...(await orReason(work)) });
    }
  });
  return results;
}

function jsonOf(results: readonly Optimized[], dryRun: boolean): string {
  const tables = results.map((result) => {
    const { outcome } = result;
    const named = { table: pathText(result.table), outcome };
    if (!("before" in result)) return { ...named, reason: result.reason };
    const { before, after, versionsRemoved, filesRemoved, bytesRemoved, milliseconds } = result;
    return {
      ...named,
      before: stateJson(before),
      ...(after !== undefined && {
        after: stateJson(after),
        rows_indexed: Math.max(0, before.unindexedRows - after.unindexedRows),
      }),
      versions_removed: versionsRemoved,
      files_removed: filesRemoved,
      bytes_removed: bytesRemoved,
      milliseconds,
    };
  });
  return jsonText({ dry_run: dryRun, tables });
}

function stateJson({ version, fragments, deletedRows, unindexedRows }: OptimizedState) {
  return { version: Number(version), fragments, deleted_rows: deletedRows, unindexed_rows: unindexedRows };
}

const HEADINGS = ["ACTION", "TABLE", "FRAGMENTS", "DELETED ROWS", "UNINDEXED ROWS", "VERSIONS", "FREED"];

function tableOf(results: readonly Optimized[], dryRun: boolean): string {
  if (results.length === 0) return "There are no tables.\n";
  const rows = results.map((result) => {
    const action = dryRun && result.outcome === "optimized" ? "would optimize" : result.outcome;
    const table = pathText(result.table);
    if (!("before" in result)) return [`${action}: ${result.reason}`, table];
    const { before, after, versionsRemoved, bytesRemoved } = result;
    const change = (key: "fragments" | "deletedRows" | "unindexedRows") =>
      after === undefined || after[key] === before[key]
        ? String(before[key])
        : `${before[key]} -> ${after[key]}`;
    const changes = [change("fragments"), change("deletedRows"), change("unindexedRows")];
    return [
      action,
      table,
      ...changes,
      versionsRemoved === 0 ? "0" : `-${versionsRemoved}`,
      sizeText(bytesRemoved),
    ];
  });
  const done = results.filter((result) => result.outcome === "optimized");
  const freed = done.reduce((sum, result) => sum + ("before" in result ? result.bytesRemoved : 0), 0);
  const summary = `${done.length} of ${results.length} ${dryRun ? "to optimize" : "optimized"}, ${sizeText(freed)} ${dryRun ? "to free" : "freed"}`;
  return `${textTable([HEADINGS, ...rows])}\n${summary}\n`;
}

/** Yields the names of all tables in a namespace and those below it. */
export async function* tablesBelow(namespace: Namespace, id: Identifier): AsyncGenerator<Identifier> {
  for await (const name of namespace.listNamespaces({ id })) yield* tablesBelow(namespace, [...id, name]);
  for await (const name of namespace.listTables({ id })) yield [...id, name];
}
