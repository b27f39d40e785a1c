import { formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { cancellationOf } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import { engineCall, repeatConflicts } from "../../engine/failures/errors.ts";
import type { NativeJob, NativeTable } from "../../engine/native/native.ts";
import { findMisread, findUnsafe } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { dropOrphanIndices, renameIndex, replacesReadable } from "../../format/changes/index-entries.ts";
import { beginIndex, type IndexBeginning, type IndexSeed } from "../../format/changes/index-seed.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readIndices } from "../../format/files/index-section.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { Job } from "../../jobs/job.ts";
import { schemaOf } from "../columns/columns.ts";
import type { RowJobContext } from "../context.ts";
import { dataOfJob } from "../read/count-rows.ts";
import { checkMemory } from "../read/memory-room.ts";
import { sizeOfExpressions } from "../read/sampled-width.ts";
import type { Guarded } from "../tables/call-data.ts";
import { duringWork } from "../tables/long-work.ts";
import { datasetOf, isMain, withData } from "../tables/open-data.ts";
import { refuseMisread } from "../tables/refuse-misread.ts";
import { allIndices, isSystemIndex } from "./all-indices.ts";
import { type IndexFields, ngramLengths } from "./index-fields.ts";
import { checkIndexedField, indexKind, indexParameters, indexTypeName } from "./index-kinds.ts";

/** An index to build. It consists of plain values, which a job can keep. */
export interface IndexPlan {
  /** The location of the table, which distinguishes it from a later table of the same name. */
  readonly location: string;
  readonly branch: string | undefined;
  readonly column: string;
  readonly name: string;
  readonly type: string;
  readonly fields: IndexFields;
}

/** Indices that are being built, so that no two get one name. */
export interface IndexBuilds {
  /**
   * Builds an index; resolves when the index is in the table.
   *
   * @param isRepeated whether an earlier attempt may have built it. Default: false
   */
  build(table: Identifier, plan: IndexPlan, signal: AbortSignal, isRepeated?: boolean): Promise<void>;
  /** Reserves the name of an index while `work` runs. @throws LanceError TableIndexAlreadyExists */
  reserve<T>(plan: IndexPlan, work: () => Promise<T>): Promise<T>;
  /** Returns the plan of an index that this process is building, or that a job of any process has to build. */
  find(location: string, branch: string | undefined, name: string): Promise<IndexPlan | undefined>;
}

/** The kind of the jobs that build an index. */
export const CREATE_INDEX = "create_index";

/** Returns the plan that a job of the kind {@link CREATE_INDEX} keeps. */
export function planOf({ spec }: Job): IndexPlan {
  const plan = JSON.parse(String(spec["plan"])) as IndexPlan;
  // The location of the record counts: those who start jobs check it.
  return { ...plan, location: String(spec["location"]) };
}

/** Number of rows whose values the engine holds at a time while it builds an index: four batches. The figure was measured. */
const ROWS_AT_A_TIME = 4 * 8192;

/** Memory of the engine for an n-gram while it builds an index of several lengths, in bytes. The figure was measured. */
const NGRAM_BYTES = 24;

/**
 * Refuses to build an index of values so wide, or of so many n-grams, that the engine might run out of memory.
 *
 * @throws LanceError InvalidInput
 */
async function checkSize(native: NativeTable, { column, fields }: IndexPlan, signal: AbortSignal) {
  const data = dataOfJob(native, signal);
  const lengths = ngramLengths(fields);
  if (lengths > 1) {
    // Most n-grams of several lengths are words of their own, all of which the engine holds.
    const { width } = (await sizeOfExpressions([column], data, { littleBytes: 0 })) ?? { width: 0 };
    const bytes = (await data.rowCount()) * width * lengths * NGRAM_BYTES;
    checkMemory(bytes, "index fewer lengths of n-grams, or a narrower column");
  }
  const size = await sizeOfExpressions([column], data);
  if (size === undefined) return;
  const rows = Math.min(await data.rowCount(), ROWS_AT_A_TIME);
  checkMemory(rows * size.width, "index a narrower column");
}

/** Creates the register of builds. */
export function createIndexBuilds(context: DataContext & RowJobContext): IndexBuilds {
  const plans = new Map<string, IndexPlan>();
  const keyOf = (location: string, branch: string | undefined, name: string) =>
    JSON.stringify([location, isMain(branch) ? "main" : branch, name]);

  return {
    async reserve(plan, work) {
      const key = keyOf(plan.location, plan.branch, plan.name);
      if (plans.has(key)) throw indexExists(plan.name);
      plans.set(key, plan);
      try {
        return await work();
      } finally {
        plans.delete(key);
      }
    },
    async find(location, branch, name) {
      const key = keyOf(location, branch, name);
      const own = plans.get(key);
      if (own !== undefined) return own;
      const queued = (await context.jobs.open(location)).filter(({ kind }) => kind === CREATE_INDEX);
      return queued.map(planOf).find((plan) => keyOf(plan.location, plan.branch, plan.name) === key);
    },
    build: (id, plan, signal, isRepeated = false) =>
      duringWork(context, { id, location: plan.location }, (table) =>
        withData(context, table, { branch: plan.branch }, async (native) => {
          const kind = indexKind(plan.type);
          const rows = await engineCall(() => native.countRows());
          const { column, name } = plan;
          await checkSize(native, plan, signal);
          const dataset = datasetOf(context, table, plan.branch);
          const build = async () => {
            const { manifest } = await readVersion(dataset, BigInt(await native.version()));
            refuseMisread(await findMisread(dataset, manifest), { expressions: [column] });
            // The engine takes parameters only once.
            const parameters = indexParameters(kind, plan.fields, rows);
            const replace = plan.fields.replace ?? false;
            if (parameters === undefined) {
              const seed = kind.seed as IndexSeed;
              return growIndex(
                native,
                dataset,
                { column, name, replace, seed, parameters: plan.fields },
                signal,
              );
            }
            const job = await native.createIndexAsync(parameters, column, replace, undefined, name, true);
            await waitForJob(job, signal);
          };
          const isBuilt = async () =>
            (await allIndices(context, { table: native, found: table }, plan.branch)).some(
              (index) => index.name === name && index.columns.includes(column),
            );
          if (!isRepeated || plan.fields.replace || !(await engineCall(isBuilt)))
            await context.gate.passSlowly(table.path, () =>
              repeatConflicts(native, build, () => !signal.aborted),
            );
          if ((await dropOrphanIndices(dataset)).has(name)) {
            throw new LanceError(
              "TableColumnNotFound",
              `column ${column} was dropped or got another type while its index was built`,
            );
          }
          await syncVersion(dataset);
        }),
      ),
  };
}

/**
 * Fills in what a request leaves open, and checks what is known before the index is built.
 *
 * @throws LanceError TableColumnNotFound, TableIndexAlreadyExists, InvalidInput
 */
export async function planIndex(
  context: Pick<DataContext, "store">,
  data: Guarded,
  request: IndexPlan,
): Promise<IndexPlan> {
  const native = data.table;
  const { names, field } = resolveField(await schemaOf(native), request.column);
  const kind = indexKind(request.type, true);
  checkIndexedField(kind, request.fields, field);
  if (!kind.needsCluster) indexParameters(kind, request.fields, await native.countRows());
  const name = request.name || `${names.join(".")}_idx`;
  if (isSystemIndex(name))
    throw new LanceError("InvalidInput", `the name ${JSON.stringify(name)} is reserved`);
  const taken = (await allIndices(context, data, request.branch)).find((index) => index.name === name);
  if (taken !== undefined && !request.fields.replace) throw indexExists(name);
  if (taken !== undefined && kind.isForOthers && indexTypeName(taken.indexType) !== kind.name)
    throw replacesReadable(name);
  return { ...request, name, column: formatFieldPath(names) };
}

/**
 * Waits for work of the engine, and stops it when the signal aborts.
 *
 * @throws LanceError Cancelled, or the signal's own reason; the engine's errors
 */
export async function waitForJob(job: NativeJob, signal: AbortSignal): Promise<void> {
  const stop = () => void job.cancel().catch(() => {});
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await engineCall(() => job.wait());
  } catch (error) {
    throw signal.aborted ? cancellationOf(signal) : error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

export function indexExists(name: string): LanceError {
  return new LanceError(
    "TableIndexAlreadyExists",
    `Index name '${name}' already exists, please specify a different name or use replace=True`,
  );
}

/** Versions before 1970 are removed, so none is. */
const KEEP_ALL_VERSIONS = 0;

/**
 * Begins an index, and lets the engine add all rows to it. The engine does so in its upkeep of the whole table, which
 * also compacts small fragments. The index gets its name when it is complete.
 *
 * @param native a handle of the dataset, which moves to its newest version
 * @param index `replace`: whether it replaces the indices of its name
 * @throws LanceError InvalidInput, if the engine cannot add the values of the column, TableIndexAlreadyExists; the table's
 *   indices stay as they are; Unsupported for a table whose rows the engine should not write again
 */
export async function growIndex(
  native: NativeTable,
  dataset: DatasetRef,
  index: IndexBeginning & { readonly replace: boolean },
  signal: AbortSignal,
): Promise<void> {
  await refuseUnsafe(dataset);
  const name = nameWhileGrowing(index);
  await beginIndex(dataset, { ...index, name }, signal);
  try {
    await native.checkoutLatest();
    await native.optimize(KEEP_ALL_VERSIONS);
    await checkComplete(dataset, { ...index, name });
    await renameIndex(dataset, { from: name, to: index.name, replace: index.replace }, signal);
  } catch (error) {
    await native.checkoutLatest();
    // The next build of this name replaces what stays if this fails.
    await native.dropIndex(name).catch(() => {});
    throw error;
  }
  await native.checkoutLatest();
}

/** Lists hide the name. The next build of an index replaces what an interrupted one leaves under it. */
export const nameWhileGrowing = ({ name }: Pick<IndexBeginning, "name">) => `__lance_gateway_growing_${name}`;

/** Refuses to have the engine compact fragments whose rows it could misread: it would write wrong values for good. */
async function refuseUnsafe(dataset: DatasetRef): Promise<void> {
  const path = await findUnsafe(dataset, (await readVersion(dataset)).manifest);
  if (path === undefined) return;
  throw new LanceError(
    "Unsupported",
    `the engine would write the rows of the table again to build an index of this type, and could lose values of ${formatFieldPath(path)}; build a BTREE, BITMAP or FTS index instead ("Lists inside of structs" in docs/limits.md)`,
  );
}

/** @throws LanceError InvalidInput, if the index does not cover all rows */
async function checkComplete(dataset: DatasetRef, { name, column }: IndexBeginning): Promise<void> {
  const found = (await readIndices(await readVersion(dataset))).find((index) => index.name === name);
  if (found?.indexedRows === found?.rows) return;
  throw new LanceError(
    "InvalidInput",
    `the engine cannot index the values of column ${JSON.stringify(column)}`,
  );
}
