import { create } from "@bufbuild/protobuf";
import { fieldNamed, formatFieldPath, parseFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import { splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { type ArrowSchema, decodeSchema } from "../../../../arrow/schema.ts";
import {
  type AddColumnsEntry,
  type AlterColumnsEntry,
  AlterTableAddColumnsResponseSchema,
  AlterTableAlterColumnsResponseSchema,
  AlterTableDropColumnsResponseSchema,
} from "../../../../gen/lance/namespace/v1/schema_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { firstRepeated } from "../../../../runtime/collections.ts";
import type { DataContext } from "../../data/data-context.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeAlteration, NativeTable } from "../../engine/native/native.ts";
import { areCostly } from "../../engine/sql/costs.ts";
import { exactColumns, refuseInexact, wholeExpression } from "../../engine/sql/exact-filter.ts";
import { checkExpressions } from "../../engine/sql/predicate.ts";
import { readSchema } from "../../engine/version-answers.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { EngineContext, ReadContext } from "../context.ts";
import {
  bindingText,
  checkFunctionColumn,
  checkInputs,
  emptyColumn,
  FUNCTION_KEY,
  fieldIdOf,
  isFunctionColumn,
  requireRecord,
} from "../functions/computed-column.ts";
import { requireFunctions } from "../functions/require-owner.ts";
import { inRoomOfChange } from "../read/memory-room.ts";
import { checkChange, memoryOfReads } from "../rows/change-memory.ts";
import { checkStorable, checkTypes } from "../rows/check-types.ts";
import { withGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf, isMain } from "../tables/open-data.ts";
import type { Reads } from "../tables/refuse-misread.ts";
import { checkName } from "./column-name.ts";
import { engineType } from "./data-type.ts";

/** The operations that add, alter and drop columns of a table. */
export function createColumnOperations(
  context: DataContext & Pick<ReadContext, "readAhead"> & Pick<EngineContext, "cluster">,
): Pick<LanceNamespace, "alterTableAddColumns" | "alterTableAlterColumns" | "alterTableDropColumns"> {
  /** Makes one new version from the newest one. */
  function change(
    call: Call,
    branch: string | undefined,
    work: (native: NativeTable, schema: ArrowSchema) => Promise<{ version: number }>,
    reads: Reads = {},
  ): Promise<bigint> {
    return withGuarded(context, call, { branch }, async (data) => {
      const { table, wait, refuseMisread, commit } = data;
      const schema = await wait(() => schemaOf(table));
      if (await areCostly(reads.expressions ?? [])) data.takeTurns();
      const bytes = await memoryOfReads(data, { expressions: reads.expressions ?? [] });
      checkChange(bytes);
      const waiting = { call, readAhead: context.readAhead };
      const refusing = async () => {
        await refuseMisread(() => reads);
        return inRoomOfChange(bytes, waiting, () => work(table, schema));
      };
      return BigInt((await commit(refusing)).version);
    });
  }

  async function addFunctionColumn(
    entries: readonly AddColumnsEntry[],
    branch: string | undefined,
    call: Call,
  ): Promise<bigint> {
    const column = await checkFunctionColumn(context, entries, call);
    if (!isMain(branch)) throw new LanceError("Unsupported", "a function fills no column of a branch");
    const record = await requireRecord(context, column.binding);
    const file = await emptyColumn(column);
    const found = await requireTable(context, call);
    const version = await change(call, branch, async (native, schema) => {
      requireNewName(schema, checkName(column.name));
      checkInputs(schema, record, column.binding);
      return native.addColumnsWithSchema(file);
    });
    // After the column: of two owners that add it, the one that has added it chooses. Without this note, the column is not filled.
    const field = await fieldIdOf(datasetOf(context, found), version, formatFieldPath([column.name]));
    const binding = bindingText(column.binding);
    const { location } = found;
    await requireFunctions(context).columns.put({ location, field, column: column.name, binding });
    return version;
  }

  /** Forgets the functions of the columns that a version has dropped. A choice that stays after a failure counts for no other column. */
  async function forgetFunctions(version: bigint, call: Call): Promise<void> {
    const functions = context.cluster?.functions;
    if (functions === undefined) return;
    const found = await requireTable(context, call);
    const dataset = datasetOf(context, found);
    const [before, after] = await Promise.all([
      readVersion(dataset, version - 1n),
      readVersion(dataset, version),
    ]);
    const kept = new Set(after.manifest.fields.map(({ id }) => id));
    for (const { id, metadata } of before.manifest.fields)
      if (FUNCTION_KEY in metadata && !kept.has(id)) await functions.columns.remove(found.location, id);
  }

  return {
    async alterTableAddColumns({ branch, newColumns }, call) {
      if (newColumns.some(isFunctionColumn)) {
        const version = await addFunctionColumn(newColumns, branch, call);
        return create(AlterTableAddColumnsResponseSchema, { version });
      }
      const { computed, columns } = await checkNewColumns(newColumns);
      const add = async (native: NativeTable, schema: ArrowSchema) => {
        for (const { name } of columns) requireNewName(schema, name);
        if (computed) return native.addComputedColumns(await wholeColumns(columns, schema));
        const exact = await exactColumns(
          columns.map(({ name, valueSql }) => [name, valueSql]),
          schema.fields,
        );
        await checkResult(native, exact);
        return native.addColumns(exact.map(([name, valueSql]) => ({ name, valueSql })));
      };
      const version = await change(call, branch, add, {
        expressions: columns.map(({ valueSql }) => valueSql),
      });
      return create(AlterTableAddColumnsResponseSchema, { version });
    },
    async alterTableAlterColumns({ branch, alterations }, call) {
      requireSome(alterations, "alterations");
      const changes = alterations.map(checkAlteration);
      // The engine would keep the last change of a column.
      const paths = changes.map(({ path }) => formatFieldPath(parseFieldPath(path)));
      requireDistinct(paths, "alterations");
      const alter = async (native: NativeTable, schema: ArrowSchema) => {
        const resolved = changes.map((each) => ({ ...each, path: enginePath(schema, each.path) }));
        checkSiblings(schema, resolved);
        return native.alterColumns(resolved);
      };
      // Another type means new values of the whole column.
      const rewritten = paths.filter((_, at) => changes[at]?.dataType !== undefined);
      const version = await change(call, branch, alter, { expressions: rewritten });
      return create(AlterTableAlterColumnsResponseSchema, { version });
    },
    async alterTableDropColumns({ branch, columns }, call) {
      requireSome(columns, "columns");
      const version = await change(call, branch, (native, schema) =>
        native.dropColumns([...new Set(columns.map((path) => enginePath(schema, path)))]),
      );
      if (isMain(branch)) await forgetFunctions(version, call).catch(() => {});
      return create(AlterTableDropColumnsResponseSchema, { version });
    },
  };
}

/** Returns a path in the spelling that the engine takes for every name. @throws LanceError TableColumnNotFound */
function enginePath(schema: ArrowSchema, path: string): string {
  return formatFieldPath(resolveField(schema, path).names);
}

/**
 * Refuses two fields of a struct with one name, after which no query could read the table. The engine compares the names of
 * whole columns only.
 *
 * @throws LanceError TableSchemaValidationError
 */
function checkSiblings(schema: ArrowSchema, changes: readonly NativeAlteration[]): void {
  const renames = new Map(changes.map(({ path, rename }) => [path, rename]));
  const parents = changes.map(({ path }) => formatFieldPath(parseFieldPath(path).slice(0, -1)));
  for (const parent of new Set(parents.filter((path) => path !== ""))) {
    const { names, field } = resolveField(schema, parent);
    const after = field.children.map(({ name }) => renames.get(formatFieldPath([...names, name])) ?? name);
    const twice = firstRepeated(after);
    if (twice === undefined) continue;
    throw new LanceError("TableSchemaValidationError", `field ${twice} already exists in ${parent}`);
  }
}

/** Refuses expressions whose values have a type that the engine can evaluate and not store, or not read again. */
async function checkResult(
  native: NativeTable,
  columns: readonly (readonly [name: string, expression: string])[],
): Promise<void> {
  const query = native.query();
  query.select(columns.map(([name, expression]) => [name, expression]));
  // The change itself reports an expression that is wrong.
  const file = await query.outputSchema().catch(() => undefined);
  if (file === undefined) return;
  const { fields } = decodeSchema(splitIpcFile(file).schemaMetadata);
  checkTypes(fields);
  checkStorable(fields);
}

/** The schema of a handle's version. */
export function schemaOf(native: NativeTable): Promise<ArrowSchema> {
  return engineCall(() => readSchema(native));
}

/** The sources of a new column's values, by the fields of the request that name them. */
const SOURCES = ["expression", "computed", "virtualColumn"] as const;

async function checkNewColumns(entries: readonly AddColumnsEntry[]) {
  requireSome(entries, "new_columns");
  const columns = entries.map((entry) => ({ name: checkName(entry.name), valueSql: sourceOf(entry) }));
  checkExpressions(
    columns.map(({ name, valueSql }) => [valueSql, `the expression of column ${JSON.stringify(name)}`]),
  );
  requireDistinct(
    columns.map(({ name }) => name),
    "new_columns",
  );
  const computed = entries.filter((entry) => entry.computed !== undefined).length;
  if (computed > 0 && computed < entries.length) {
    throw invalid(
      "new_columns has some with expression and some with computed; the two cannot be one version",
    );
  }
  if (computed === 0) return { computed: false, columns };
  for (const { name, valueSql } of columns)
    await refuseInexact(valueSql, `the expression of column ${JSON.stringify(name)}`);
  return { computed: true, columns };
}

async function wholeColumns(
  columns: readonly { readonly name: string; readonly valueSql: string }[],
  { fields }: ArrowSchema,
): Promise<{ name: string; valueSql: string }[]> {
  const whole = [];
  for (const { name, valueSql } of columns)
    whole.push({ name, valueSql: await wholeExpression(valueSql, fields) });
  return whole;
}

/** Returns the expression of a new column. */
function sourceOf(entry: AddColumnsEntry): string {
  const column = `column ${JSON.stringify(entry.name)}`;
  const given = SOURCES.filter((source) => entry[source] !== undefined);
  if (given.includes("virtualColumn")) {
    throw new LanceError(
      "Unsupported",
      `${column}: a virtual_column needs a pickled function, which this server does not open; give a SQL expression with computed`,
    );
  }
  if (given.length !== 1) {
    throw invalid(
      `${column} must have one of expression, computed and virtual_column; an expression such as "cast(null as double)" gives nulls of a type`,
    );
  }
  return entry.expression ?? entry.computed ?? "";
}

function checkAlteration({
  path,
  rename,
  nullable,
  dataType,
  virtualColumn,
}: AlterColumnsEntry): NativeAlteration {
  if (virtualColumn !== undefined) {
    throw new LanceError(
      "Unsupported",
      `column ${JSON.stringify(path)}: a virtual_column needs a Python function, which this server does not run`,
    );
  }
  if (rename === undefined && nullable === undefined && dataType === undefined) {
    throw invalid(`column ${JSON.stringify(path)}: one of rename, nullable and data_type must be set`);
  }
  return {
    path,
    ...(rename !== undefined && { rename: checkName(rename) }),
    ...(nullable !== undefined && { nullable }),
    ...(dataType !== undefined && { dataType: engineType(dataType) }),
  };
}

/** Refuses the name of an existing column. @throws LanceError TableSchemaValidationError */
export function requireNewName({ fields }: ArrowSchema, name: string): void {
  if (fieldNamed(fields, name) === undefined) return;
  throw new LanceError("TableSchemaValidationError", `Column ${name} already exists in the dataset`);
}

function requireSome(list: readonly unknown[], field: string): void {
  if (list.length === 0) throw invalid(`${field} must not be empty`);
}

function requireDistinct(names: readonly string[], field: string): void {
  const twice = firstRepeated(names);
  if (twice !== undefined) throw invalid(`${field} names ${JSON.stringify(twice)} twice`);
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", message);
}
