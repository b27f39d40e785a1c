import { create } from "@bufbuild/protobuf";
import { fieldNamed, resolveField } from "../../../../arrow/field-path.ts";
import { emptyIpcFile, mayHaveNulls } from "../../../../arrow/ipc/file-scan.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { checkCompatible } from "../../../../arrow/upload/compatible.ts";
import { collectUpload, type Upload } from "../../../../arrow/upload/upload.ts";
import {
  type MergeInsertIntoTableRequest,
  type MergeInsertIntoTableResponse,
  MergeInsertIntoTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/data_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import { untilEarlyEnd } from "../../concurrency/locks.ts";
import { cancellationOf, timeLimit, untilAborted } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { areCostly } from "../../engine/sql/costs.ts";
import { exactMatch } from "../../engine/sql/exact-filter.ts";
import { predicateSteps } from "../../engine/sql/predicate.ts";
import { withBlobColumns } from "../blobs/legacy-blobs.ts";
import type { ReadContext, UploadContext } from "../context.ts";
import { inRoomOfChange } from "../read/memory-room.ts";
import { openGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf, isMain } from "../tables/open-data.ts";
import { isWritten } from "../tables/table-data.ts";
import { checkWriteLog } from "../tables/write-log.ts";
import { memoryOfReads } from "./change-memory.ts";
import { checkBlobs, checkTypes } from "./check-types.ts";
import { mergeWithoutDoubling } from "./doubled-keys.ts";
import { parseDuration } from "./duration.ts";
import { createShared, writeFirst } from "./first-version.ts";
import { createRowTurns, type MergeLocks } from "./merge-locks.ts";

/** A part of a merge: an action on rows, and the condition for them. */
interface Conditional {
  readonly condition: string | undefined;
}

/** The checked parameters of a merge. */
interface Plan {
  readonly on: readonly string[];
  readonly update: Conditional | undefined;
  readonly insert: boolean;
  readonly delete: Conditional | undefined;
  readonly useIndex: boolean | undefined;
  /** Whether the rows go into the log of the table. */
  readonly useLsm: boolean | undefined;
  /** In milliseconds. */
  readonly timeout: number | undefined;
}

/** The operation that merges rows into a table by key. */
export function createMergeOperations(
  context: DataContext & Pick<UploadContext, "maxUploadBytes"> & Pick<ReadContext, "readAhead">,
  { withLock }: Pick<MergeLocks, "withLock">,
): Pick<LanceNamespace, "mergeInsertIntoTable"> {
  const { maxUploadBytes, readAhead } = context;
  const takeTurn = createRowTurns(context);
  const locks = context.createLocks("merges");

  /** Merges into a declared table, where nothing matches; returns undefined when the table has data. */
  async function firstVersion(call: Call, table: FoundTable, upload: Upload, plan: Plan) {
    if (await isWritten(context, table)) return undefined;
    keysOf(plan, upload.schema, upload.schema);
    checkWriteLog(plan.useLsm, false);
    try {
      const own = await withBlobColumns(upload, call.holdBody);
      const file = plan.insert ? own.file : emptyIpcFile(own.file);
      const version = await writeFirst(context, table, () => createShared(context, table, file));
      return answer({ version, numInsertedRows: plan.insert ? upload.rows : 0 });
    } catch (error) {
      if (isLanceError(error, "TableAlreadyExists")) return undefined;
      throw error;
    }
  }

  async function merge(
    call: Call,
    table: FoundTable,
    branch: string | undefined,
    received: Upload,
    plan: Plan,
    onCommitted: () => void,
  ) {
    const data = await openGuarded(context, call, { branch }, table);
    try {
      const schema = await data.schema();
      // The engine merges no plain bytes into blobs.
      const upload = await withBlobColumns(received, call.holdBody, schema);
      const on = keysOf(plan, schema, upload.schema);
      checkCompatible(upload.schema, schema, plan.insert);
      // Rows that bring all columns replace those of the table; others take the rest of their columns from there.
      const all = plan.update !== undefined && upload.schema.fields.length < schema.fields.length;
      const update = await exact(plan.update, bothSides(schema, upload.schema));
      const remove = await exact(plan.delete, schema.fields);
      const expressions = [update?.condition, remove?.condition];
      if (await areCostly(expressions)) data.takeTurns();
      // A merge is not refused for its memory, because the engine may read less with an index.
      const bytes = await memoryOfReads(data, { expressions, whole: all });
      const useIndex =
        plan.useIndex !== false && (await canUseIndex(plan, schema, upload, on)) ? plan.useIndex : false;
      const log = await data.wait(() => data.table.getLsmWriteSpec());
      checkWriteLog(plan.useLsm, Boolean(log));
      const dataset = datasetOf(context, table, branch);
      const mergeOnce = () => {
        let builder = data.table.mergeInsert(on);
        if (update) builder = builder.whenMatchedUpdateAll(update.condition);
        if (plan.insert) builder = builder.whenNotMatchedInsertAll();
        if (remove) builder = builder.whenNotMatchedBySourceDelete(remove.condition);
        if (useIndex !== undefined) builder = builder.useIndex(useIndex);
        if (log) builder = builder.useLsm(false);
        const limit = timeLimit(call, plan.timeout);
        if (limit !== undefined) builder.setTimeout(limit);
        return builder.execute(upload.file);
      };
      const work = () =>
        inRoomOfChange(bytes, { call, readAhead }, () =>
          plan.insert ? mergeWithoutDoubling({ dataset, table: data.table, on }, mergeOnce) : mergeOnce(),
        );
      return answer(
        await data.commit(async () => {
          await data.refuseMisread(() => ({ all, expressions }));
          return work();
        }, onCommitted),
      );
    } finally {
      data.release();
      // The engine goes on with the merge of a call that has ended, and would insert the keys of the next one beside it.
      await data.ended;
    }
  }

  return {
    async mergeInsertIntoTable(request, data, call) {
      const plan = await planOf(request);
      const table = await requireTable(context, call);
      const { signal, holdBody: hold } = call;
      const upload = await collectUpload(data, { maxBytes: maxUploadBytes, signal, hold });
      checkBlobs(upload.schema.fields);
      checkTypes(upload.schema.fields);
      const branch = isMain(request.branch) ? undefined : request.branch;
      // The engine would commit two concurrent merges that both insert the same new key.
      const alone = (held: () => Promise<void>) => locks.withLocks([`${table.path}\0${branch ?? ""}`], held);
      let work: Promise<unknown> | undefined;
      const run = () =>
        takeTurn(call, branch, (endTurn) =>
          untilEarlyEnd(alone, (end) => {
            const mergeRows = async () => {
              if (signal.aborted) throw cancellationOf(signal);
              const first = branch === undefined ? await firstVersion(call, table, upload, plan) : undefined;
              const onCommitted = () => {
                end();
                endTurn();
              };
              return first ?? (await merge(call, table, branch, upload, plan, onCommitted));
            };
            const merged = mergeRows();
            work = merged;
            return merged;
          }),
        );
      if (!plan.insert) return run();
      const locked = withLock(table.location, signal, async () => {
        try {
          return await run();
        } finally {
          // A call that has ended does not end the engine's work.
          await work?.catch(() => {});
        }
      });
      // Only after the upload, so that no slow client has the lock.
      return untilAborted(locked, signal);
    },
  };
}

async function planOf(request: MergeInsertIntoTableRequest): Promise<Plan> {
  const { whenMatchedUpdateAll, whenNotMatchedInsertAll = false, whenNotMatchedBySourceDelete } = request;
  const update = await conditional(
    "when_matched_update_all",
    whenMatchedUpdateAll,
    request.whenMatchedUpdateAllFilt,
  );
  const remove = await conditional(
    "when_not_matched_by_source_delete",
    whenNotMatchedBySourceDelete,
    request.whenNotMatchedBySourceDeleteFilt,
  );
  if (request.on.length === 0) throw new LanceError("InvalidInput", "on must name the key columns");
  if (update === undefined && remove === undefined && !whenNotMatchedInsertAll) {
    throw new LanceError(
      "InvalidInput",
      "The merge insert job is not configured to change the data in any way; set when_matched_update_all, when_not_matched_insert_all or when_not_matched_by_source_delete",
    );
  }
  return {
    on: request.on,
    update,
    insert: whenNotMatchedInsertAll,
    delete: remove,
    useIndex: request.useIndex,
    useLsm: request.useLsm,
    timeout: parseDuration("timeout", request.timeout),
  };
}

async function conditional(
  name: string,
  wanted: boolean | undefined,
  filter: string | undefined,
): Promise<Conditional | undefined> {
  const condition = await inSlices(predicateSteps(filter));
  if (wanted) return { condition };
  if (condition === undefined) return undefined;
  throw new LanceError("InvalidInput", `${name}_filt has no effect without ${name}`);
}

/** Returns work with its condition in the form in which the engine evaluates it correctly. @throws LanceError InvalidInput */
async function exact(work: Conditional | undefined, fields: readonly ArrowField[]) {
  return work && { condition: work.condition && (await exactMatch(work.condition, fields)) };
}

/** Returns the columns that a condition over the table and the new rows may name. */
function bothSides(target: ArrowSchema, source: ArrowSchema): ArrowField[] {
  return Object.entries({ target, source }).map(([name, { fields: children }]) => ({
    name,
    nullable: true,
    type: { name: "struct" },
    children,
    dictionary: undefined,
    metadata: {},
  }));
}

/** Returns the columns of the key, which both table and rows must have. */
function keysOf({ on }: Plan, table: ArrowSchema, rows: ArrowSchema): string[] {
  const names = on.map((path) => {
    const [name = "", ...rest] = resolveField(table, path).names;
    if (rest.length > 0) {
      throw new LanceError("Unsupported", `on names ${path}; a field inside a struct cannot be a key`);
    }
    if (fieldNamed(rows.fields, name) !== undefined) return name;
    throw new LanceError("TableSchemaValidationError", `the rows have no column ${JSON.stringify(name)}`);
  });
  return [...new Set(names)];
}

/**
 * Whether the engine may look up the keys in an index. With such a lookup, it drops the rows whose key has a null. It
 * panics when the rows lack a column of the table and the update has a condition.
 */
async function canUseIndex(
  { update }: Plan,
  table: ArrowSchema,
  { file, schema }: Upload,
  on: readonly string[],
): Promise<boolean> {
  if (update?.condition !== undefined && schema.fields.length < table.fields.length) return false;
  return !(await mayHaveNulls(file, schema, on));
}

/** The number of rows that a merge has changed, and the version. */
interface Outcome {
  readonly version: number;
  readonly numInsertedRows: number;
  readonly numUpdatedRows?: number;
  readonly numDeletedRows?: number;
  readonly numAttempts?: number;
}

function answer(outcome: Outcome): MergeInsertIntoTableResponse {
  const { version, numInsertedRows, numUpdatedRows = 0, numDeletedRows = 0, numAttempts = 1 } = outcome;
  return create(MergeInsertIntoTableResponseSchema, {
    version: BigInt(version),
    numInsertedRows: BigInt(numInsertedRows),
    numUpdatedRows: BigInt(numUpdatedRows),
    numDeletedRows: BigInt(numDeletedRows),
    numAttempts,
    numRows: BigInt(numInsertedRows + numUpdatedRows),
  });
}
