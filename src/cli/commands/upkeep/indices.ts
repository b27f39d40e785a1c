import { setTimeout as sleep } from "node:timers/promises";
import {
  DescribeTableIndexStatsResponseSchema,
  type Identifier,
  type IndexContent,
  IndexContentSchema,
} from "../../../client/exports.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { type OptionTable, type OptionValues, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseDuration, parseInteger, parseSwitch, parseText } from "../../../config/parsers.ts";
import { createProgress } from "../../terminal/progress.ts";
import { catalogCommand, jsonOf } from "../catalog-command.ts";
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

/** Types of indices, and which call builds them. */
const SCALAR = ["BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "FM", "RTREE"] as const;
const VECTOR = [
  "IVF_FLAT",
  "IVF_PQ",
  "IVF_SQ",
  "IVF_RQ",
  "IVF_HNSW_FLAT",
  "IVF_HNSW_PQ",
  "IVF_HNSW_SQ",
] as const;

const count = (flag: string, help: string, common: string) =>
  ({ flag, value: "N", help, common, parse: parseInteger(1, 2 ** 31 - 1) }) as const;

const OPTIONS = {
  type: {
    flag: "type",
    value: "TYPE",
    help: "Type of the index, of columns with plain values, words (FTS) or vectors (IVF_…).",
    common: "Type of the index, such as BTREE, FTS or IVF_PQ.",
    parse: parseChoice([...SCALAR, "FTS", ...VECTOR]),
  },
  name: {
    flag: "name",
    value: "NAME",
    help: "Name of the index. Default: the server's choice.",
    parse: parseText,
  },
  distance: {
    flag: "distance",
    value: "TYPE",
    help: "Distance of vectors. Default: l2.",
    parse: parseChoice(["l2", "cosine", "dot", "hamming"]),
  },
  partitions: count(
    "partitions",
    "Number of partitions of vectors. Default: by the number of rows.",
    "Number of partitions of vectors.",
  ),
  subVectors: count(
    "sub-vectors",
    "Number of parts into which IVF_PQ and IVF_HNSW_PQ split vectors.",
    "Number of parts into which IVF_PQ splits vectors.",
  ),
  withPosition: {
    flag: "with-position",
    help: "Keep the positions of words, which searches for phrases need.",
    common: "Keep the positions of words, for phrases.",
    fallback: "false",
    parse: parseSwitch,
    needs: { flag: "type", is: ["FTS"] },
  },
  branch: BRANCH_OPTION,
  wait: { flag: "wait", help: "Wait until the index has all rows.", fallback: "false", parse: parseSwitch },
  timeout: { ...TIMEOUT_OPTION, needs: { flag: "wait" } },
} as const satisfies OptionTable;

type Options = OptionValues<typeof OPTIONS>;

/** @throws UsageError for options that do nothing for the type of the index */
function checkUse({ type, distance, partitions, subVectors }: Options): void {
  const isVector = VECTOR.some((each) => each === type);
  if (!isVector && [distance, partitions, subVectors].some((value) => value !== undefined))
    throw new UsageError(`--distance, --partitions and --sub-vectors are for vectors, and --type is ${type}`);
}

/** `lance-gateway index create`: builds an index of a column. */
export const indexCreate = catalogCommand({
  operands: "<TABLE> <COLUMN>",
  options: OPTIONS,
  async run({ namespace, operands: [path = "", column = ""], options, signal, answer }) {
    const { type, name, distance, partitions, subVectors, withPosition, branch, wait, timeout } = options;
    if (type === undefined) throw new UsageError("--type is missing");
    checkUse(options);
    const id = parsePath(path);
    const isScalar = SCALAR.some((each) => each === type);
    const operation = isScalar ? namespace.createTableScalarIndex : namespace.createTableIndex;
    const request = {
      ...{ id, column, indexType: type, branch },
      ...(name !== undefined && { name }),
      ...(distance !== undefined && { distanceType: distance }),
      ...(partitions !== undefined && { numPartitions: partitions }),
      ...(subVectors !== undefined && { numSubVectors: subVectors }),
      ...(type === "FTS" && { withPosition }),
    };
    const before = await namesOf();
    const { jobId } = await operation(request, { signal });
    const made = name ?? (await namesOf()).find((each) => !before.includes(each));
    if (wait) {
      await waitForIndices(
        namespace,
        { id, branch, names: made === undefined ? [] : [made], timeout },
        signal,
      );
    }
    await answer(
      { index: made ?? null, ...(jobId !== undefined && { job: jobId }) },
      () => `created index${made === undefined ? "" : ` ${made}`} of ${column}\n`,
    );

    async function namesOf(): Promise<string[]> {
      const indices = await Array.fromAsync(namespace.listTableIndices({ id, branch }, { signal }));
      return indices.map(({ indexName }) => indexName);
    }
  },
});
