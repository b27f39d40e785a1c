import type { JsonObject } from "@bufbuild/protobuf";
import { LanceError } from "../../../../namespace/errors.ts";
import { isJsonObject } from "../../../../runtime/text.ts";
import type { DataContext } from "../../data/data-context.ts";
import { engineCall, toEngineError } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { findMisread } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { dropIndex, renameIndex } from "../../format/changes/index-entries.ts";
import { commitSegments, hasSegments, type WrittenSegment } from "../../format/changes/index-segments.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import { indexType } from "../../format/files/index-section.ts";
import { countRows } from "../../format/files/manifest.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { Job } from "../../jobs/job.ts";
import type { EngineContext } from "../context.ts";
import { workOnCluster } from "../jobs/elsewhere.ts";
import { withData } from "../tables/open-data.ts";
import { refuseMisread } from "../tables/refuse-misread.ts";
import { type IndexPlan, nameWhileGrowing, planOf } from "./index-build.ts";
import { distanceOf, type IndexFields } from "./index-fields.ts";
import { type IndexKind, indexKind } from "./index-kinds.ts";

type Context = DataContext & Pick<EngineContext, "cluster">;

/** Kinds that the builders of a cluster do not have. */
const NOT_THERE: ReadonlySet<string> = new Set(["FM"]);

/** Why an index cannot be built on a cluster; undefined if it can. */
export function whyNotOnCluster({ branch, type }: Pick<IndexPlan, "branch" | "type">): string | undefined {
  const { name } = indexKind(type, true);
  if (NOT_THERE.has(name)) return `a Ray cluster builds no index of type ${name}`;
  return branch === undefined ? undefined : "a Ray cluster builds indices of the main branch only";
}

/**
 * Has a cluster build an index, and commits what its workers have written. It may run again at any point: the table has the former
 * index or the new one.
 */
export function buildOnCluster(context: Context, job: Job, signal: AbortSignal): Promise<void> {
  const plan = planOf(job);
  return workOnCluster(context, job, signal, {
    async prepare(dataset) {
      const { manifest } = await readVersion(dataset);
      refuseMisread(await findMisread(dataset, manifest), { expressions: [plan.column] });
    },
    async finish(report, { table, dataset }) {
      const segments = readSegments(report);
      if (await hasSegments(dataset, { name: plan.name, segments })) return;
      await withData(context, table, {}, (native) =>
        commitIndex(native, dataset, { plan, segments }, signal),
      );
    },
  });
}

/** Commits an index under a hidden name, and gives it its own once the engine has read it, or if only others do. */
async function commitIndex(
  native: NativeTable,
  dataset: DatasetRef,
  { plan, segments }: { readonly plan: IndexPlan; readonly segments: readonly WrittenSegment[] },
  signal: AbortSignal,
): Promise<void> {
  const { name: to, column, fields } = plan;
  const name = nameWhileGrowing({ name: to });
  const { listed, isForOthers = false } = indexKind(plan.type, true);
  const [{ typeUrl } = { typeUrl: "" }] = segments;
  if (isForOthers && segments.some((segment) => indexType(segment.typeUrl) !== listed))
    throw badReport(`a segment has the type ${typeUrl}`);
  await commitSegments(dataset, { name, column, segments }, signal);
  try {
    await engineCall(() => native.checkoutLatest());
    if (isForOthers) await checkFiles(dataset, segments);
    else await checkReadable(native, dataset, { name, type: plan.type, segments });
    const replaceable = isForOthers ? listed : undefined;
    await renameIndex(dataset, { from: name, to, replace: fields.replace ?? false, replaceable }, signal);
  } catch (error) {
    // The next build of this name replaces what stays if this fails. The engine drops no index that it ignores.
    await dropIndex(dataset, name, new AbortController().signal).catch(() => {});
    await native.checkoutLatest();
    throw error;
  }
  await native.checkoutLatest();
}

/** Size up to which an index is read as a whole before it replaces another, in bytes; of a larger one, the engine reads the figures. */
const READ_WHOLE_BYTES = 64 * 1024 * 1024;

interface Unread extends Pick<IndexPlan, "name" | "type"> {
  readonly segments: readonly WrittenSegment[];
}

/** @throws LanceError Unsupported, if the engine cannot read an index */
async function checkReadable(native: NativeTable, dataset: DatasetRef, index: Unread): Promise<void> {
  const { name, type, segments } = index;
  const bytes = await checkFiles(dataset, segments);
  // The engine's Node API has no word for types that it does not begin itself, although its queries use them.
  try {
    const stats = await native.indexStats(name);
    if (stats === null || (stats.indexType === "UNKNOWN" && indexKind(type, true).seed === undefined))
      throw new Error("it does not know the type");
    if (bytes <= READ_WHOLE_BYTES) await readWhole(native, name);
  } catch (cause) {
    throw unreadable(type, String((cause as Error).message), cause);
  }
}

async function readWhole(native: NativeTable, name: string): Promise<void> {
  try {
    await native.prewarmIndex(name);
  } catch (error) {
    // The engine has read all of it, and has no room to keep it beside the indices of other tables.
    if (toEngineError(error).kind !== "PayloadTooLarge") throw error;
  }
}

/** Returns the size of the files of segments. @throws LanceError Internal if one is missing or has another size */
async function checkFiles(dataset: DatasetRef, segments: readonly WrittenSegment[]): Promise<number> {
  let bytes = 0;
  for (const { uuid, files } of segments) {
    if (files.length === 0) throw badReport(`the segment ${uuid} has no files`);
    for (const { path, size } of files) {
      const info = await dataset.store.head(`${dataDirectory(dataset)}/_indices/${uuid}/${path}`);
      if (info?.size !== size) throw badReport(`the file ${path} of the segment ${uuid} is not as described`);
      bytes += size;
    }
  }
  return bytes;
}

function unreadable(type: string, reason: string, cause?: unknown): LanceError {
  const text = `the engine of this gateway cannot read the ${type} index that the cluster has built, and the table keeps its indices: ${reason}`;
  return new LanceError("Unsupported", text, { cause });
}

/** Describes the build of an index to the driver on a cluster. */
export async function describeBuild(job: Job, dataset: DatasetRef): Promise<JsonObject> {
  const plan = planOf(job);
  const kind = indexKind(plan.type, true);
  const { rows } = countRows((await readVersion(dataset)).manifest);
  return {
    column: plan.column,
    name: plan.name,
    index_type: kind.name === "FTS" ? "INVERTED" : kind.name,
    is_vector: kind.vector,
    parameters: parametersOf(kind, plan.fields, Number(rows)),
  };
}

/** The parameters that have other names for lance-ray. */
const RENAMED: Readonly<Partial<Record<keyof IndexFields, string>>> = { maxIterations: "max_iters" };

/** Returns the parameters of an index as lance-ray's functions take them. */
function parametersOf(kind: IndexKind, fields: IndexFields, rows: number): JsonObject {
  const { distanceType: _, targetPartitionSize: __, ...given } = fields;
  const taken = Object.entries(given).filter(([name]) => kind.takes.includes(name as keyof IndexFields));
  const parameters: JsonObject = {};
  for (const [name, value] of taken) {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    parameters[RENAMED[name as keyof IndexFields] ?? snakeCase(name)] = value as string | number | boolean;
  }
  const distance = distanceOf(fields);
  if (!kind.vector) return parameters;
  if (distance !== undefined) parameters["metric"] = distance;
  return { ...parameters, ...trainingOf(kind, fields, rows) };
}

/** Rows that are sampled for each centroid. The driver samples fewer where there are not that many. */
const SAMPLE_RATE = 256;

/** Bits for each dimension of a RaBitQ code, for which lance-ray and its workers have different defaults. */
const RQ_BITS = 1;

/** Returns partitions for the rows that there are, and samples. */
function trainingOf(kind: IndexKind, fields: IndexFields, rows: number): JsonObject {
  const { sampleRate = SAMPLE_RATE, targetPartitionSize } = fields;
  const usual = Math.min(Math.round(Math.sqrt(rows)), Math.floor(rows / sampleRate));
  const bySize = targetPartitionSize && Math.round(rows / targetPartitionSize);
  const partitions = Math.max(1, fields.numPartitions ?? bySize ?? usual);
  const bits: JsonObject = kind.name === "IVF_RQ" ? { num_bits: fields.numBits ?? RQ_BITS } : {};
  return { num_partitions: partitions, sample_rate: sampleRate, ...bits };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Name of a file in the directory of a segment. */
const FILE = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;

/** Reads the segments that a driver has reported. @throws LanceError Internal for anything else */
function readSegments({ segments }: JsonObject): WrittenSegment[] {
  if (!Array.isArray(segments) || segments.length === 0) throw badReport("it has no segments");
  return segments.map((segment) => {
    if (!isJsonObject(segment)) throw badReport("a segment is no object");
    const { uuid, fields, dataset_version, fragment_ids, index_version, type_url, details, files } = segment;
    const isWhole =
      UUID.test(String(uuid)) &&
      [fields, fragment_ids, files].every(Array.isArray) &&
      [...(fields as unknown[]), ...(fragment_ids as unknown[]), dataset_version, index_version].every(
        (number) => Number.isSafeInteger(number) && (number as number) >= 0,
      ) &&
      (files as unknown[]).every(
        (file) => isJsonObject(file) && FILE.test(String(file["path"])) && Number.isSafeInteger(file["size"]),
      );
    if (!isWhole) throw badReport(`the segment ${String(uuid)} is not described as it should be`);
    return {
      uuid: String(uuid),
      fields: fields as number[],
      datasetVersion: BigInt(dataset_version as number),
      fragmentIds: fragment_ids as number[],
      indexVersion: index_version as number,
      typeUrl: String(type_url),
      details: Buffer.from(String(details), "base64"),
      files: files as unknown as WrittenSegment["files"],
    };
  });
}

function badReport(reason: string): LanceError {
  return new LanceError("Internal", `the driver on Ray has reported no index: ${reason}`);
}
