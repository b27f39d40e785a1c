import type { ArrowField } from "../../arrow/schema.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { columnOf, fieldsByName, fieldsOf, typeText } from "../column-types.ts";
import { queryFrom } from "../materialized/source-query.ts";
import { openTable } from "../opened-tables.ts";
import type { SqlCall, SqlStatement, SqlTableName, SqlWrites } from "../sql-engine.ts";
import { nameOf, type Target } from "../table-names.ts";
import { fittingText, nullsText, putQuery, requireNulls } from "../tree/fit-columns.ts";
import { prepareChange } from "./prepare-change.ts";
import {
  countedStream,
  countResult,
  countSchema,
  emptyStream,
  joined,
  parameterSchema,
} from "./write-result.ts";
import type { PreparedWrite, PrepareQueries, PrepareQuery, WriteStatement } from "./write-statement.ts";
import { rowsOf } from "./write-statement.ts";

/** Prepares a statement that changes something: it is checked, and its tables are opened. */
export async function prepareWrite(
  statement: WriteStatement,
  queries: PrepareQueries,
  call: SqlCall,
): Promise<SqlStatement> {
  if (call.writes === undefined)
    throw new LanceError("Unsupported", "statements that write are not served here; queries are");
  const { parameters, run } = await prepare(statement, queries, call);
  return {
    ...{ schema: await countSchema(), parameters, readsTables: true, isUpdate: true },
    async *run(row, signal, tables = call.tables, writes = call.writes as SqlWrites) {
      yield* countResult(await run(row, writes, { tables, signal }));
    },
    async *explain() {
      yield* [];
      throw new LanceError("Unsupported", "a statement that writes has no plan");
    },
  };
}

function prepare(
  statement: WriteStatement,
  { prepareQuery, planView }: PrepareQueries,
  call: SqlCall,
): Promise<PreparedWrite> {
  switch (statement.kind) {
    case "insert":
      return prepareInsert(statement, prepareQuery, call);
    case "createTableAs":
      return prepareCreateAs(statement, prepareQuery, call);
    case "createTable":
      return prepareCreate(statement, prepareQuery, call);
    case "createView":
      return prepareCreateView(statement, planView, call);
    case "dropTable":
    case "dropView":
    case "dropMaterializedView":
      return prepareDrop(statement, call);
    case "createMaterializedView":
      return prepareCreateMaterialized(statement, call);
    case "refreshMaterializedView":
      return prepareRefresh(statement, call);
    case "update":
    case "delete":
      return prepareChange(statement, nameOf(statement.target, call), prepareQuery, call);
  }
}

type Of<K extends WriteStatement["kind"]> = Extract<WriteStatement, { kind: K }>;

async function prepareInsert(
  { target, columns, query }: Of<"insert">,
  prepareQuery: PrepareQuery,
  call: SqlCall,
): Promise<PreparedWrite> {
  const name = nameOf(target, call);
  const fields = fieldsOf(await openTable(call.tables, name, call.signal));
  const text = fittingText(insertedFields(target, fields, columns).map(resultColumn));
  const rows = await prepareQuery(query, { ...call, reshape: { text, apply: putQuery, isPure: true } });
  return {
    parameters: rows.parameters,
    async run(parameters, writes, { tables, signal }) {
      let count = 0;
      const each = (await rowsOf(parameters)).map((row) => rows.run(row, signal, tables));
      if (each.length === 0) return 0n;
      const stream = countedStream(joined(each), (added) => {
        count += added;
      });
      await writes.insert(name.path, stream, signal);
      return BigInt(count);
    },
  };
}

/** Returns the columns that get values, in the order of the values. */
function insertedFields(
  { text }: Target,
  fields: readonly ArrowField[],
  names: readonly string[] = fields.map(({ name }) => name),
): readonly ArrowField[] {
  const byName = fieldsByName(fields, text);
  return names.map((name) => {
    const field = byName.get(name.toLowerCase());
    if (field === undefined) throw new LanceError("InvalidInput", `table "${text}" has no column "${name}"`);
    return field;
  });
}

function resultColumn(field: ArrowField): { readonly name: string; readonly type: string } {
  const { name, type, refused } = columnOf(field);
  if (refused !== undefined)
    throw new LanceError("Unsupported", `column "${name}" has the type ${refused}, which SQL does not write`);
  return { name, type: typeText(type) };
}

async function prepareCreateAs(
  { target, existing, query }: Of<"createTableAs">,
  prepareQuery: PrepareQuery,
  call: SqlCall,
): Promise<PreparedWrite> {
  const name = nameOf(target, call);
  const rows = await prepareQuery(query, call);
  return {
    parameters: rows.parameters,
    async run(row, writes, { tables, signal }) {
      if (existing === "keep" && (await exists(name, { tables, signal }))) return 0n;
      let count = 0;
      const stream = countedStream(rows.run(row, signal, tables), (added) => {
        count += added;
      });
      await writes.create(name.path, existing, stream, signal);
      return BigInt(count);
    },
  };
}

async function prepareCreate(
  { target, existing, columns }: Of<"createTable">,
  prepareQuery: PrepareQuery,
  call: SqlCall,
): Promise<PreparedWrite> {
  const name = nameOf(target, call);
  const reshape = { text: nullsText(columns), apply: requireNulls, isPure: true };
  const { schema, parameters } = await prepareQuery("SELECT 1", { ...call, reshape });
  const stream = await emptyStream(schema, (at) => columns[at]?.isNullable !== false);
  return {
    parameters,
    async run(_row, writes, { signal }) {
      async function* rows() {
        yield stream;
      }
      await writes.create(name.path, existing, rows(), signal);
      return 0n;
    },
  };
}

async function prepareCreateView(
  { target, existing, query, text }: Of<"createView">,
  planView: PrepareQueries["planView"],
  call: SqlCall,
): Promise<PreparedWrite> {
  const name = nameOf(target, call);
  const { path } = name;
  const { namespacePath = [] } = call;
  const schema = await planView({ path, query, namespacePath }, call);
  return {
    parameters: await parameterSchema(0),
    async run(_row, writes, { tables, signal }) {
      if (existing === "keep" && (await exists(name, { tables, signal }))) return 0n;
      const view = { path, query: text, namespacePath, schema, replaces: existing === "replace" };
      await writes.createView(view, signal);
      return 0n;
    },
  };
}

async function prepareCreateMaterialized(
  { target, existing, autoRefresh, query }: Of<"createMaterializedView">,
  call: SqlCall,
): Promise<PreparedWrite> {
  const name = nameOf(target, call);
  const view = { path: name.path, query: queryFrom(query, nameOf(query.source, call).path), autoRefresh };
  return {
    parameters: await parameterSchema(0),
    async run(_row, writes, { tables, signal }) {
      if (existing === "keep" && (await exists(name, { tables, signal }))) return 0n;
      try {
        return await writes.createMaterializedView(view, signal);
      } catch (thrown) {
        if (existing === "keep" && isLanceError(thrown, "TableAlreadyExists")) return 0n;
        throw thrown;
      }
    },
  };
}

async function prepareRefresh(
  { target, isFull }: Of<"refreshMaterializedView">,
  call: SqlCall,
): Promise<PreparedWrite> {
  const { path } = nameOf(target, call);
  return {
    parameters: await parameterSchema(0),
    run: (_row, writes, { signal }) => writes.refreshMaterializedView(path, isFull, signal),
  };
}

/** Changes that drop objects. */
const DROPS = {
  dropTable: "drop",
  dropView: "dropView",
  dropMaterializedView: "dropMaterializedView",
} as const;

async function prepareDrop(
  { kind, target, isOptional }: Of<keyof typeof DROPS>,
  call: SqlCall,
): Promise<PreparedWrite> {
  const name = nameOf(target, call);
  return {
    parameters: await parameterSchema(0),
    async run(_row, writes, { signal }) {
      try {
        await writes[DROPS[kind]](name.path, signal);
      } catch (thrown) {
        if (!isOptional || !isLanceError(thrown, "TableNotFound")) throw thrown;
      }
      return 0n;
    },
  };
}

async function exists(
  name: SqlTableName,
  { tables, signal }: Pick<SqlCall, "tables" | "signal">,
): Promise<boolean> {
  try {
    await tables.open(name, signal);
    return true;
  } catch (thrown) {
    if (isLanceError(thrown, "TableNotFound")) return false;
    throw thrown;
  }
}
