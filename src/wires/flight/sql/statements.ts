import { create } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../arrow/ipc/ipc-forms.ts";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { LanceDbService } from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../../gen/lance/gateway/v1/sql_view_pb.ts";
import { QueryTableRequestSchema } from "../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { DATABASE_HEADERS } from "../../../namespace/call/headers.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { WritableNamespace } from "../../../sql/namespace-writes.ts";
import type { ReadableNamespace } from "../../../sql/readable-namespace.ts";
import type { ViewQuery } from "../../../sql/sql-engine.ts";
import type { PipelineCalls, Presented } from "../pipeline-calls.ts";
import { rowsOf } from "../read-flights.ts";
import type { Statement } from "../tickets.ts";

const {
  describeTable,
  describeTableVersion,
  listTables,
  countTableRows,
  createTable,
  insertIntoTable,
  updateTable,
  deleteFromTable,
  dropTable,
  createMaterializedView,
  refreshMaterializedView,
} = LanceNamespaceService.method;
const { createView, describeView, dropView, listViews } = ViewService.method;
const { describeMaterializedView, listMaterializedViews, dropMaterializedView, describeJob } =
  LanceDbService.method;

/** Runs statements in SQL. */
export interface SqlRunner {
  /** Checks a statement, opens its tables, and returns its schemas as encapsulated messages. */
  describe(statement: Statement, caller: SqlCaller): Promise<DescribedStatement>;
  /** Checks the query of a view, and returns the columns of its result as an encapsulated message. */
  planView(view: ViewQuery, caller: SqlCaller): Promise<Uint8Array>;
}

/** A statement with its tables at the versions that they had when it was described. */
export interface DescribedStatement extends StatementSchemas {
  /** Whether it changes something when it runs. */
  readonly isUpdate: boolean;
  /** Whether it reads or changes tables. The pipeline knows nothing of a statement that reads none. */
  readonly readsTables: boolean;
  /** Yields the result, as whole IPC messages. @param caller may be another call of the caller for whom it was described */
  run(caller: SqlCaller, parameters: Uint8Array | undefined): AsyncIterable<Uint8Array>;
  /** Yields the plan in place of the result. */
  explain(caller: SqlCaller): AsyncIterable<Uint8Array>;
}

/** Columns and parameters of a statement. */
export interface StatementSchemas {
  readonly schema: Uint8Array;
  readonly parameters: Uint8Array;
}

/** The caller of a statement. */
export interface SqlCaller {
  /** Reads tables as the caller. */
  readonly tables: ReadableNamespace;
  /** Changes tables as the caller. */
  readonly writes: WritableNamespace;
  /** Key by which a statement that is sent again changes nothing more. Default: it changes the tables again. */
  readonly idempotencyKey: string | undefined;
  /** Name of the database in statements. */
  readonly database: string;
  /** Key of the caller. */
  readonly key: string;
  /** Ends the statement. */
  readonly signal: AbortSignal;
}

/** Name of the catalog of callers who name no database. */
const DEFAULT_CATALOG = "lance";

/** Returns the name of the catalog in SQL, which is the caller's database. */
export function catalogOf(headers: Readonly<Record<string, string>>): string {
  return DATABASE_HEADERS.map((name) => headers[name]).find(Boolean) ?? DEFAULT_CATALOG;
}

/**
 * Returns the caller of a statement. The pipeline authorizes every table that the statement reads or changes.
 *
 * @param presented the ticket. Default: there is none, and the client may have chosen a key.
 * @throws LanceError PermissionDenied for a ticket of another caller
 */
export async function sqlCallerOf(calls: PipelineCalls, presented: Presented = {}): Promise<SqlCaller> {
  const key = await requireOwner(calls, presented);
  const of = ({ signal }: { readonly signal?: AbortSignal | undefined }): Presented => ({
    ...presented,
    idempotencyKey: undefined,
    signal,
    keepsChunks: true,
  });
  return {
    key,
    writes: writesOf(calls, presented),
    idempotencyKey: presented.idempotencyKey ?? calls.idempotencyKey,
    database: catalogOf({ ...calls.headers, ...presented.database }),
    signal: calls.signal,
    tables: {
      listNamespaces: () => calls.pass(),
      describeTable: async (request, options) =>
        (await calls.unary(describeTable, { ...request }, of(options))).response,
      describeTableVersion: async (request, options) =>
        (await calls.unary(describeTableVersion, { ...request }, of(options))).response,
      countTableRows: async (request, options) =>
        (await calls.unary(countTableRows, { ...request }, of(options))).response,
      listTables: async (request, options) =>
        (await calls.unary(listTables, { ...request }, of(options))).response,
      listViews: async (request, options) =>
        (await calls.unary(listViews, { ...request }, of(options))).response,
      describeView: async (request, options) =>
        (await calls.unary(describeView, { ...request }, of(options))).response,
      describeMaterializedView: async (request, options) =>
        (await calls.unary(describeMaterializedView, { ...request }, of(options))).response,
      listMaterializedViews: async (request, options) =>
        (await calls.unary(listMaterializedViews, { ...request }, of(options))).response,
      queryTable: (request, options) => ({
        bytes: () => rowsOf(create(QueryTableRequestSchema, { ...request } as never), calls, of(options)),
      }),
    },
  };
}

/** Returns the key of the caller. A statement may name no table, for which the pipeline would find out whose ticket it is. */
export async function requireOwner(calls: PipelineCalls, { heldBy }: Presented): Promise<string> {
  const key = await calls.owner();
  if (heldBy !== undefined && heldBy !== key)
    throw new LanceError("PermissionDenied", "the ticket belongs to another caller");
  return key;
}

function writesOf(calls: PipelineCalls, presented: Presented): WritableNamespace {
  type Options = Parameters<WritableNamespace["dropTable"]>[1];
  const of = ({ signal, headers = {} }: Options): Presented => ({
    ...presented,
    idempotencyKey: headers["idempotency-key"],
    signal,
  });
  const data = () => create(HttpBodySchema, { contentType: ARROW_STREAM });
  return {
    createTable: (request, rows, options) =>
      calls.upload(createTable, create(createTable.input, { ...request, data: data() }), rows, of(options)),
    insertIntoTable: (request, rows, options) =>
      calls.upload(
        insertIntoTable,
        create(insertIntoTable.input, { ...request, data: data() }),
        rows,
        of(options),
      ),
    updateTable: async (request, options) => (await calls.unary(updateTable, request, of(options))).response,
    deleteFromTable: async (request, options) =>
      (await calls.unary(deleteFromTable, request, of(options))).response,
    dropTable: async (request, options) => (await calls.unary(dropTable, request, of(options))).response,
    createView: (request, options) => calls.unary(createView, request, of(options)),
    dropView: (request, options) => calls.unary(dropView, request, of(options)),
    createMaterializedView: async (request, options) =>
      (await calls.unary(createMaterializedView, request, of(options))).response,
    refreshMaterializedView: async (request, options) =>
      (await calls.unary(refreshMaterializedView, request, of(options))).response,
    dropMaterializedView: (request, options) => calls.unary(dropMaterializedView, request, of(options)),
    describeJob: async (request, options) => (await calls.unary(describeJob, request, of(options))).response,
  };
}

/** How long a statement waits for its DoGet, in milliseconds. */
const KEPT_MS = 60_000;

/** Number of statements that wait, and most characters of one that does. */
const MAX_KEPT = 64;
const MAX_LENGTH = 16 * 1024;

/**
 * Statements between the call that describes them and the DoGet of their ticket, so that their tables are opened once. The ticket has the statement,
 * too: one that is not kept, or is kept by another worker, is described again.
 */
export interface KeptStatements {
  /**
   * Keeps a statement, unless it is long.
   *
   * @param owner key of the caller to whom the ticket belongs
   * @param length of its text, in characters
   */
  keep(ticketId: string, owner: string, statement: DescribedStatement, length: number): void;
  /** Returns the statement of a ticket, once. */
  take(ticketId: string, owner: string): DescribedStatement | undefined;
}

export function createKeptStatements(now: () => number = Date.now): KeptStatements {
  /** The oldest first. */
  const kept = new Map<
    string,
    { readonly owner: string; readonly statement: DescribedStatement; readonly at: number }
  >();

  function evict(): void {
    for (const [id, { at }] of kept) {
      if (kept.size <= MAX_KEPT && now() - at < KEPT_MS) return;
      kept.delete(id);
    }
  }
  return {
    keep(id, owner, statement, length) {
      if (length > MAX_LENGTH) return;
      kept.set(id, { owner, statement, at: now() });
      evict();
    },
    take(id, owner) {
      evict();
      const found = kept.get(id);
      if (found?.owner !== owner) return undefined;
      kept.delete(id);
      return found.statement;
    },
  };
}
