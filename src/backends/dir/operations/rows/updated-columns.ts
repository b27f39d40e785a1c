import { resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import type { ColumnUpdate } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { inSlices, type Steps } from "../../../../runtime/pace.ts";
import { exactValue } from "../../engine/sql/exact-filter.ts";
import { namesIn } from "../../engine/sql/named-columns.ts";
import { expressionSteps, MAX_EXPRESSIONS_LENGTH } from "../../engine/sql/predicate.ts";
import { treeSteps } from "../../engine/sql/trees.ts";

/** Checks the expressions of an update, in steps. The steps throw LanceError InvalidInput. */
export function* checkUpdates(updates: readonly ColumnUpdate[]): Steps<void> {
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
export async function updatedColumns(
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
