import { create } from "@bufbuild/protobuf";
import { resolveField } from "../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../arrow/schema.ts";
import {
  type ColumnUpdate,
  DeleteFromTableResponseSchema,
  UpdateTableResponseSchema,
} from "../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { sameProperties } from "../catalog/row.ts";
import { onePredicate } from "../engine/predicate.ts";
import type { DirContext } from "./context.ts";
import { withGuarded } from "./guarded.ts";
import { findTable, objectIdOf, requireParent, tableNotFound } from "./lookup.ts";

/** The operations that change rows where they are. */
export function createChangeOperations(
  context: DirContext,
): Pick<LanceNamespace, "updateTable" | "deleteFromTable"> {
  const { catalog } = context;

  /** Adds to the properties of a table, and hands out all that it has. */
  async function addProperties(
    id: Identifier,
    added: Record<string, string>,
  ): Promise<Record<string, string>> {
    const table = await findTable(context, await catalog.read(), id);
    if (table === undefined) throw tableNotFound(id);
    const properties = { ...table.properties, ...added };
    if (sameProperties(table.properties, properties)) return properties;
    return catalog.mutate((draft) => {
      const objectId = objectIdOf(id);
      const row = draft.get(objectId);
      if (row === undefined && table.listed) throw tableNotFound(id);
      requireParent(draft, id);
      const location = row?.location ?? table.location;
      const current = { ...(row ?? table).properties, ...added };
      draft.put({ objectId, objectType: "table", location, properties: current });
      return current;
    });
  }

  return {
    async updateTable({ predicate, updates, properties, branch }, call) {
      const filter = onePredicate(predicate);
      checkUpdates(updates);
      const result = await withGuarded(context, call, { branch }, async ({ table, schema, wait }) => {
        const columns = columnsOf(updates, await schema());
        return wait(() => table.update(filter, columns));
      });
      return create(UpdateTableResponseSchema, {
        updatedRows: BigInt(result.rowsUpdated),
        version: BigInt(result.version),
        properties: await addProperties(call.id, properties),
      });
    },
    async deleteFromTable({ predicate, branch }, call) {
      const filter = onePredicate(predicate);
      if (filter === undefined) {
        throw new LanceError("InvalidInput", "predicate must not be blank; `true` deletes all rows");
      }
      const result = await withGuarded(context, call, { branch }, ({ table, wait }) =>
        wait(() => table.delete(filter)),
      );
      return create(DeleteFromTableResponseSchema, {
        version: BigInt(result.version),
        numDeletedRows: BigInt(result.numDeletedRows),
      });
    },
  };
}

function checkUpdates(updates: readonly ColumnUpdate[]): void {
  if (updates.length === 0) throw new LanceError("InvalidInput", "updates must have at least one column");
  for (const { column, expression } of updates) {
    if (onePredicate(expression) !== undefined) continue;
    throw new LanceError("InvalidInput", `the update of column ${JSON.stringify(column)} has no expression`);
  }
}

function columnsOf(updates: readonly ColumnUpdate[], schema: ArrowSchema): [string, string][] {
  const columns = new Map<string, string>();
  for (const { column, expression } of updates) {
    const [name = "", ...rest] = resolveField(schema, column).names;
    if (rest.length > 0) {
      throw new LanceError(
        "Unsupported",
        `${column} is a field inside a struct; update the struct as a whole`,
      );
    }
    if (columns.has(name)) {
      throw new LanceError("InvalidInput", `column ${JSON.stringify(name)} is updated more than once`);
    }
    columns.set(name, expression);
  }
  return [...columns];
}
