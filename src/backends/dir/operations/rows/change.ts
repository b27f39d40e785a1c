import { create } from "@bufbuild/protobuf";
import {
  type ColumnUpdate,
  DeleteFromTableResponseSchema,
  UpdateTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { once } from "../../../../runtime/once.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { DataContext } from "../../data/data-context.ts";
import { areCostly } from "../../engine/sql/costs.ts";
import { MAX_VALUE_LENGTH } from "../../engine/sql/functions.ts";
import { lengthOf, predicateSteps } from "../../engine/sql/predicate.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { ReadContext } from "../context.ts";
import { countRows } from "../read/count-rows.ts";
import { inRoomOfChange } from "../read/in-room.ts";
import { withGuarded } from "../tables/call-data.ts";
import { checkChange, memoryOfReads, memoryOfUpdate } from "./change-memory.ts";
import { createRowTurns } from "./merge-locks.ts";
import { checkUpdates, updatedColumns } from "./updated-columns.ts";

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
