import { create } from "@bufbuild/protobuf";
import {
  type ColumnUpdate,
  DeleteFromTableResponseSchema,
  UpdateTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { once } from "../../../../runtime/once.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { checkGrowth } from "../../catalog/state/properties-size.ts";
import { type Row, sameProperties } from "../../catalog/state/row.ts";
import { areCostly } from "../../engine/sql/costs.ts";
import { MAX_VALUE_LENGTH } from "../../engine/sql/functions.ts";
import { lengthOf, predicateSteps } from "../../engine/sql/predicate.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { ReadContext } from "../context.ts";
import { checkTableProperties } from "../properties.ts";
import { countRows } from "../read/count-rows.ts";
import { inRoomOfChange } from "../read/in-room.ts";
import { withGuarded } from "../tables/call-data.ts";
import { type FoundTable, findTable } from "../tables/find-table.ts";
import { objectIdOf, requireParent } from "../tables/naming/object-names.ts";
import { requireUnchanged } from "../tables/require-row.ts";
import { checkChange, memoryOfReads, memoryOfUpdate } from "./change-memory.ts";
import { createRowTurns } from "./row-turns.ts";
import { checkUpdates, updatedColumns } from "./updated-columns.ts";

/** The operations that update and delete rows in place. */
export function createChangeOperations(
  context: TableContext & Pick<ReadContext, "readAhead">,
): Pick<LanceNamespace, "updateTable" | "deleteFromTable"> {
  const { catalog } = context;
  const takeTurn = createRowTurns(context);

  /** Adds properties to those of a table, and returns all of them. */
  async function addProperties(
    id: Identifier,
    table: FoundTable,
    added: Record<string, string>,
  ): Promise<Record<string, string>> {
    const properties = { ...table.properties, ...added };
    if (sameProperties(table.properties, properties)) return properties;
    return catalog.mutate((draft) => {
      requireUnchanged(draft, id, table);
      requireParent(draft, id);
      const current = { ...(draft.get(objectIdOf(id)) ?? table).properties, ...added };
      draft.put(withProperties(id, table, current));
      return current;
    });
  }

  return {
    async updateTable({ predicate, updates, properties, branch }, call) {
      const filter = await inSlices(predicateSteps(predicate));
      await inSlices(checkUpdates(updates));
      if (Object.keys(properties).length > 0) {
        const state = await catalog.read();
        const table = await findTable(context, state, call.id);
        checkTableProperties(context, call.id, properties, table?.properties);
        if (table !== undefined) {
          // Before the rows are changed, so that a refusal leaves them as they are.
          const row = withProperties(call.id, table, { ...table.properties, ...properties });
          const changes = new Map([[row.objectId, row]]);
          await inSlices(checkGrowth(state, changes, state.propertiesBytes, catalog.limits));
        }
      }
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
        properties: await afterChange(() => addProperties(call.id, found, properties)),
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

function withProperties(id: Identifier, { location }: FoundTable, properties: Record<string, string>): Row {
  return { objectId: objectIdOf(id), objectType: "table", location, properties };
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
