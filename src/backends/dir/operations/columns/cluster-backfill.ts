import { createHash } from "node:crypto";
import { formatFieldPath } from "../../../../arrow/field-path.ts";
import { splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { type ArrowField, type ArrowType, decodeSchema } from "../../../../arrow/schema.ts";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { exactValue, exactWithAnyIndex } from "../../engine/sql/exact-filter.ts";
import { isPlain, whyNotPortable } from "../../engine/sql/portable.ts";
import { namedColumns } from "../../engine/sql/trees.ts";
import { findMisread } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { columnFacts } from "../../format/files/manifest.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { Job, JobFacts } from "../../jobs/job.ts";
import type { EngineContext } from "../context.ts";
import { describeFunction, noteFailedRows } from "../functions/function-fill.ts";
import { workOnCluster } from "../jobs/elsewhere.ts";
import { refuseMisread } from "../tables/refuse-misread.ts";
import { schemaOf } from "./columns.ts";
import { filledBy, fillMarkOf, whyNoFill } from "./filled-version.ts";

type Context = DataContext & Pick<EngineContext, "cluster">;

/** A column to fill. */
export interface ColumnToFill {
  readonly column: string;
  /** The expression of its values. */
  readonly expression: string;
  /** Which rows get a value. Default: all. */
  readonly where: string | undefined;
}

/** The work of a cluster on a column, as a part of the parameters of its job. */
export interface ClusterFill {
  readonly column: string;
  /** The expression as the engine takes it, of the type of the column. */
  readonly value: string;
  readonly filter?: string | undefined;
  /** The columns of the table, so that its driver notices others. */
  readonly columns: string;
}

/**
 * Plans the work of a cluster on a column.
 *
 * @returns why the cluster cannot do it, if it would not write the values that the engine of the gateway computes
 */
export async function planOnCluster(
  native: NativeTable,
  dataset: DatasetRef,
  { column, expression, where }: ColumnToFill,
): Promise<{ readonly fill: ClusterFill } | { readonly reason: string }> {
  const { manifest } = await readVersion(dataset);
  if (!takesStagedRows(manifest)) return { reason: "a feature of the table" };
  const { fields } = await schemaOf(native);
  const target = fields.find(({ name }) => name === column);
  if (target === undefined || !isPlain(target)) return { reason: `the type of the column ${column}` };
  for (const each of [expression, ...(where === undefined ? [] : [where])]) {
    const reason = await whyNotPortable(each, fields);
    if (reason !== undefined) return { reason };
  }
  const exact = await exactValue(expression, fields);
  // The engine takes a whole text as a column first, also one such as `a-1`. In a cast it would not.
  const copied = fields.find(({ name }) => name.toLowerCase() === exact.toLowerCase());
  const operand = copied === undefined ? exact : formatFieldPath([copied.name]);
  const hasColumns = namedColumns([expression], fields).length > 0;
  const value = await typedValue(native, [exact, operand], target, hasColumns);
  if (value === undefined) return { reason: "another type than that of the column" };
  const filter = where === undefined ? undefined : await exactWithAnyIndex(where, fields);
  const columns = columnsDigest(manifest.fields);
  return { fill: { column, value, ...(filter !== undefined && { filter }), columns } };
}

/**
 * Plans the work of a cluster on a column whose values a function computes.
 *
 * @throws LanceError Unsupported if a cluster cannot fill it
 */
export async function planFunctionOnCluster(
  native: NativeTable,
  dataset: DatasetRef,
  { column, where }: Pick<ColumnToFill, "column" | "where">,
): Promise<Omit<ClusterFill, "value">> {
  const { manifest } = await readVersion(dataset);
  const refuse = (reason: string) =>
    new LanceError("Unsupported", `a Ray cluster does not fill column ${column}: ${reason}`);
  if (!takesStagedRows(manifest)) throw refuse("a feature of the table");
  const { fields } = await schemaOf(native);
  const filter = where ?? `${formatFieldPath([column])} is null`;
  const reason = await whyNotPortable(filter, fields);
  if (where !== undefined && reason !== undefined) throw refuse(reason);
  const exact = where === undefined ? filter : await exactWithAnyIndex(where, fields);
  return { column, filter: exact, columns: columnsDigest(manifest.fields) };
}

/**
 * Returns an expression that has the type of a column; undefined if the type has no name by which the engine casts as it does in an update.
 *
 * @param expression it, and how a cast takes it
 */
async function typedValue(
  native: NativeTable,
  [expression, operand]: readonly [string, string],
  { type }: ArrowField,
  hasColumns: boolean,
): Promise<string | undefined> {
  if (sameType(await typeOf(native, expression), type)) return expression;
  const name = sqlTypeOf(type);
  // The engine converts constants in other ways.
  if (name === undefined || !hasColumns) return undefined;
  const cast = `cast((${operand}) as ${name})`;
  return sameType(await typeOf(native, cast), type) ? cast : undefined;
}

async function typeOf(native: NativeTable, expression: string): Promise<ArrowType | undefined> {
  const query = native.query();
  query.select([["value", expression]]);
  const { fields } = decodeSchema(splitIpcFile(await query.outputSchema()).schemaMetadata);
  return fields[0]?.type;
}

function sameType(one: ArrowType | undefined, other: ArrowType): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

const INTEGERS: Readonly<Record<number, string>> = { 8: "tinyint", 16: "smallint", 32: "int", 64: "bigint" };

function sqlTypeOf(type: ArrowType): string | undefined {
  switch (type.name) {
    case "int":
      return type.signed ? INTEGERS[type.bits] : undefined;
    case "float":
      return { 16: undefined, 32: "float", 64: "double" }[type.bits];
    case "bool":
      return "boolean";
    case "utf8":
      return "string";
    default:
      return undefined;
  }
}

/** Returns what a job notes about the columns of a table, so that its expression means the same when its driver begins. */
function columnsDigest(fields: readonly Field[]): string {
  return createHash("sha256")
    .update(JSON.stringify(columnFacts(fields)))
    .digest("hex");
}

/** Defines how the drivers of backfills work. */
export function describeClusterBackfill({ cluster }: Context, kind: string): void {
  cluster?.describe(kind, async (job, dataset) => {
    const committed = await filledBy(job, dataset);
    const { manifest } = await readVersion(dataset);
    const { column, value, filter, columns, function: bound } = job.spec;
    if (committed === undefined && columnsDigest(manifest.fields) !== columns)
      throw new LanceError("ConcurrentModification", "the columns of the table have changed meanwhile");
    return {
      column: String(column),
      ...(bound === undefined
        ? { value: String(value) }
        : { function: await describeFunction({ cluster }, job) }),
      ...(typeof filter === "string" && { filter }),
      ...{ version: Number(manifest.version), mark: fillMarkOf(job) },
      ...(committed !== undefined && { committed: { ...committed } }),
    };
  });
  cluster?.allowCommits(kind, whyNoFill);
}

/** Has a cluster fill a column by a single version. It may run again at any point. */
export function fillOnCluster(context: Context, job: Job, signal: AbortSignal): Promise<JobFacts> {
  const { column, value, filter } = job.spec;
  const expressions = [value, filter].flatMap((each) => (typeof each === "string" ? [each] : []));
  return workOnCluster<JobFacts>(context, job, signal, {
    async prepare(dataset) {
      const { manifest } = await readVersion(dataset);
      refuseMisread(await findMisread(dataset, manifest), { expressions: [...expressions, String(column)] });
    },
    async recover(dataset) {
      const filled = await filledBy(job, dataset);
      return filled && { ...filled };
    },
    async finish(report, { dataset }) {
      const { rows, version } = report;
      const failed =
        job.spec["function"] === undefined ? {} : await noteFailedRows(context, job, report, Date.now());
      const filled = await filledBy(job, dataset);
      if (filled !== undefined) return { ...filled, ...failed };
      if (rows === 0) return { rows, sourceVersion: Number(version), version: Number(version), ...failed };
      throw new LanceError("Internal", "the driver on Ray has reported values that are not in the table");
    },
  });
}
