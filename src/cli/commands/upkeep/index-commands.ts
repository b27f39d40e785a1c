import { setTimeout as sleep } from "node:timers/promises";
import {
  DescribeTableIndexStatsResponseSchema,
  type Identifier,
  type IndexContent,
  IndexContentSchema,
} from "../../../client/exports.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { parseDuration } from "../../../config/parsers.ts";
import { createProgress } from "../../terminal/progress.ts";
import { catalogCommand } from "../catalog-command.ts";
import { jsonOf } from "../message-json.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { factTable, sizeText, textTable } from "../text-table.ts";

/** `lance-gateway index ls`: lists the indices of a table. */
export const indexLs = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, operands: [path = ""], options: { branch }, signal, answer }) {
    const listing = namespace.listTableIndices({ id: parsePath(path), branch }, { signal });
    const indices = await Array.fromAsync(listing);
    const facts = indices.map((index) => jsonOf(IndexContentSchema, index));
    await answer(facts, () => textTable([HEADINGS, ...indices.map(rowOf)]));
  },
});

const HEADINGS = ["INDEX", "TYPE", "COLUMNS", "STATUS", "ROWS", "UNINDEXED", "SIZE"];

function rowOf(index: IndexContent): string[] {
  const { indexName, indexType = "", columns, status, numIndexedRows, numUnindexedRows, sizeBytes } = index;
  const figures = [numIndexedRows, numUnindexedRows].map((rows) => (rows === undefined ? "" : String(rows)));
  const size = sizeBytes === undefined ? "" : sizeText(Number(sizeBytes));
  return [indexName, indexType, columns.join(", "), status.toLowerCase(), ...figures, size];
}

/** `lance-gateway index stats`: prints the figures of an index. */
export const indexStats = catalogCommand({
  operands: "<TABLE> <INDEX>",
  access: "read",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, operands: [path = "", indexName = ""], options: { branch }, signal, answer }) {
    const request = { id: parsePath(path), indexName, branch };
    const found = await namespace.describeTableIndexStats(request, { signal });
    await answer(jsonOf(DescribeTableIndexStatsResponseSchema, found), () =>
      factTable({
        type: found.indexType,
        distance: found.distanceType,
        rows: found.numIndexedRows,
        "rows not yet": found.numUnindexedRows,
        segments: found.numIndices,
      }),
    );
  },
});

/** `lance-gateway index drop`: drops an index. */
export const indexDrop = catalogCommand({
  operands: "<TABLE> <INDEX>",
  options: { branch: BRANCH_OPTION },
  question: ({ operands: [path = "", indexName = ""] }) => `Drop the index ${indexName} of ${path}`,
  async run({ namespace, operands: [path = "", indexName = ""], options: { branch }, signal, answer }) {
    await namespace.dropTableIndex({ id: parsePath(path), indexName, branch }, { signal });
    await answer({ index: indexName }, () => `dropped index ${indexName}\n`);
  },
});

const INTERVAL_MS = 500;

/** Options of a command that waits. */
export const TIMEOUT_OPTION = {
  flag: "timeout",
  value: "TIME",
  help: "Longest wait, such as 30s or 10m; the work goes on after it. Default: no limit.",
  common: "Longest wait, such as 30s or 10m. Default: no limit.",
  parse: parseDuration,
} as const;

/** `lance-gateway index wait`: waits until indices have all rows of the table. */
export const indexWait = catalogCommand({
  operands: "<TABLE> [INDEX...]",
  access: "wait",
  options: { branch: BRANCH_OPTION, timeout: TIMEOUT_OPTION },
  async run({ namespace, operands: [path = "", ...names], options, signal, answer }) {
    const id = parsePath(path);
    await waitForIndices(namespace, { ...options, id, names }, signal);
    const what = names.length === 0 ? "all indices" : names.join(", ");
    await answer({ table: pathText(id), indices: names }, () => `${what}: every row is indexed\n`);
  },
});

interface Wanted {
  readonly id: Identifier;
  readonly branch: string | undefined;
  /** Names of indices. Default: all. */
  readonly names: readonly string[];
  /** Longest wait in milliseconds. Default: no limit. */
  readonly timeout: number | undefined;
}

/**
 * Waits until indices exist and have all rows of their table, with a bar of their progress.
 *
 * @throws Error with a single line when the time is over.
 */
export async function waitForIndices(
  namespace: Namespace,
  { id, branch, names, timeout }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  const ends = timeout === undefined ? Number.POSITIVE_INFINITY : performance.now() + timeout;
  const progress = createProgress({ label: pathText(id), unit: "rows", total: undefined });
  try {
    for (;;) {
      const listing = namespace.listTableIndices({ id, branch }, { signal });
      const indices = (await Array.fromAsync(listing)).filter(
        ({ indexName }) => names.length === 0 || names.includes(indexName),
      );
      const left = indices.filter(({ numUnindexedRows = 0n }) => numUnindexedRows > 0n);
      const missing = names.filter((name) => !indices.some(({ indexName }) => indexName === name));
      if (left.length === 0 && missing.length === 0) return;
      if (performance.now() >= ends) {
        const late = [...missing, ...left.map(({ indexName }) => indexName)].join(", ");
        throw new Error(`${late} has not all rows within the time`);
      }
      progress.show(
        sum(indices, "numIndexedRows"),
        sum(indices, "numIndexedRows") + sum(indices, "numUnindexedRows"),
      );
      await sleep(Math.min(INTERVAL_MS, Math.max(1, ends - performance.now())), undefined, { signal });
    }
  } finally {
    progress.end();
  }
}

function sum(indices: readonly IndexContent[], field: "numIndexedRows" | "numUnindexedRows"): number {
  return indices.reduce((total, index) => total + Number(index[field] ?? 0n), 0);
}
