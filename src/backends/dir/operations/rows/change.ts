import { create } from "@bufbuild/protobuf";
import { resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import {
  type ColumnUpdate,
  DeleteFromTableResponseSchema,
  UpdateTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { inSlices, type Steps } from "../../../../runtime/pace.ts";
import { once } from "../../../../runtime/promises.ts";
import type { DataContext } from "../../data/data-context.ts";
import { areCostly } from "../../engine/sql/costs.ts";
import { exactValue } from "../../engine/sql/exact-filter.ts";
import { MAX_VALUE_LENGTH } from "../../engine/sql/functions.ts";
import {
  expressionSteps,
  lengthOf,
  MAX_EXPRESSIONS_LENGTH,
  predicateSteps,
} from "../../engine/sql/predicate.ts";
import { namesIn, treeSteps } from "../../engine/sql/trees.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { ReadContext } from "../context.ts";
import { countRows } from "../read/count-rows.ts";
import { inRoomOfChange } from "../read/memory-room.ts";
import { withGuarded } from "../tables/call-data.ts";
import { checkChange, memoryOfReads, memoryOfUpdate } from "./change-memory.ts";
import { createRowTurns } from "./merge-locks.ts";

/** The operations that update and delete rows in place. */
export function createChangeOperations(
  context: DataContext & Pick<ReadContext, "readAhead">,
): Pick<LanceNamespace, "updateTable" | "deleteFromTable"> {
  const { tables } = context;
  const takeTurn = createRowTurns(context);

  return {
    async updateTable({ predicate, updates, properties, branch }, call) {
      const filter = await inSlices(predicateSteps(predicate));
      await inSlices(checkUpdates(updates));
      // Before the rows are changed, so that a refusal leaves them as they are.
      if (Object.keys(properties).length > 0) await tables.properties.checkAdded(call, properties);
      const { result, found } = await takeTurn(call, branch, (endTurn) =>
        withGuarded(context, call, { branch }, async (data) => {
          const { found, table, schema, safeFilter, refuseMisread, commit } = data;
          const waiting = { call, readAhead: context.readAhead };
          if (await areCostly([filter, ...updates.map(({ expression }) => expression)])) data.takeTurns();
          const columns = await updatedColumns(updates, await schema());
          const check = () =>
            refuseMisread(() => ({
              all: true,
              without: columns.map(([name]) => name),
              expressions: [filter, ...columns.map(([, expression]) => expression)],
            }));
          await check();
          const safe = await safeFilter(filter);
          const countFound = once(() => countRows(data, safe, waiting));
          await checkSize(updates, countFound);
          const bytes = await memoryOfUpdate(data, safe, countFound);
          checkChange(bytes);
          const update = async () => {
            await check();
            return inRoomOfChange(bytes, waiting, () => table.update(safe, columns));
          };
          return { result: await commit(update, endTurn), found };
        }),
      );
      return create(UpdateTableResponseSchema, {
        updatedRows: BigInt(result.rowsUpdated),
        version: BigInt(result.version),
        properties: await afterChange(() => tables.properties.add(found, properties)),
      });
    },
    async deleteFromTable({ predicate, branch }, call) {
      const filter = await inSlices(predicateSteps(predicate));
      const result = await takeTurn(call, branch, (endTurn) =>
        withGuarded(context, call, { branch }, async (data) => {
          const { table, safeFilter, refuseMisread, commit } = data;
          const waiting = { call, readAhead: context.readAhead };
          if (await areCostly([filter])) data.takeTurns();
          const check = () => refuseMisread(() => ({ expressions: [filter] }));
          await check();
          const safe = await safeFilter(filter);
          const bytes = await memoryOfReads(data, { expressions: [safe] });
          checkChange(bytes);
          return commit(async () => {
            await check();
            return inRoomOfChange(bytes, waiting, () => table.delete(safe));
          }, endTurn);
        }),
      );
      return create(DeleteFromTableResponseSchema, {
        version: BigInt(result.version),
        numDeletedRows: BigInt(result.numDeletedRows),
      });
    },
  };
}

/** Number of rows that the engine updates at a time, and maximum size of the constants that they may get, in bytes. */
const BATCH_ROWS = 8192;
const BATCH_BYTES = BATCH_ROWS * MAX_VALUE_LENGTH;

/** Refuses texts so long in so many rows at a time that the process could run out of memory. */
async function checkSize(updates: readonly ColumnUpdate[], countRows: () => Promise<number>): Promise<void> {
  const length = lengthOf(updates.map(({ expression }) => expression));
  if (length <= MAX_VALUE_LENGTH) return;
  const rows = await countRows();
  if (length * Math.min(rows, BATCH_ROWS) <= BATCH_BYTES) return;
  throw new LanceError(
    "InvalidInput",
    `the expressions of updates have ${length} characters, too many for ${rows} rows; update fewer rows at a time`,
  );
}

/** Checks the expressions of an update, in steps. The steps throw LanceError InvalidInput. */
function* checkUpdates(updates: readonly ColumnUpdate[]): Steps<void> {
  if (updates.length === 0) throw new LanceError("InvalidInput", "updates must have at least one column");
  yield* expressionSteps(
    updates.map(({ column, expression }) => [expression, `the update of column ${JSON.stringify(column)}`]),
    MAX_EXPRESSIONS_LENGTH,
  );
}

/**
 * Returns the columns of an update, each with the expression for the engine.
 *
 * @throws LanceError TableColumnNotFound; InvalidInput for a column that is updated twice; Unsupported for a field inside a struct, and for
 *   an expression that reads another updated column
 */
async function updatedColumns(
  updates: readonly ColumnUpdate[],
  schema: ArrowSchema,
): Promise<[name: string, expression: string][]> {
  const columns = new Map<string, string>();
  const asked = new Map<string, string>();
  for (const { column, expression } of updates) {
    const { names, field } = resolveField(schema, column);
    const [name = "", ...rest] = names;
    if (rest.length > 0) {
      throw new LanceError(
        "Unsupported",
        `${column} is a field inside a struct; update the struct as a whole`,
      );
    }
    if (columns.has(name)) {
      throw new LanceError("InvalidInput", `column ${JSON.stringify(name)} is updated more than once`);
    }
    asked.set(name, expression);
    columns.set(name, castToVector(await exactValue(expression, schema.fields), field));
  }
  if (asked.size > 1) await inSlices(refuseNewValues(asked));
  return [...columns];
}

/**
 * Refuses expressions that read another updated column. The engine computes column after column, in an order that differs from one update
 * to the next, and an expression sees the new values of the columns before it.
 */
function* refuseNewValues(expressions: ReadonlyMap<string, string>): Steps<void> {
  const updated = Map.groupBy(expressions.keys(), (name) => name.toLowerCase());
  for (const [name, expression] of expressions) {
    for (const read of namesIn(yield* treeSteps(expression))) {
      const other = updated.get(read)?.find((column) => column !== name);
      if (other === undefined) continue;
      throw new LanceError(
        "Unsupported",
        `the update of column ${JSON.stringify(name)} reads ${JSON.stringify(other)}, which the same request updates: the engine may read the new value; update ${JSON.stringify(name)} in an earlier request`,
      );
    }
  }
}

/** Casts the values of a column of vectors. Without it, the engine sets a vector of another length to null. */
function castToVector(expression: string, { type, children }: ArrowField): string {
  const item = children[0]?.type;
  if (type.name !== "fixed_size_list" || item?.name !== "float") return expression;
  return `arrow_cast(${expression}, 'FixedSizeList(${type.size}, Float${item.bits})')`;
}
