import {
  CherryPickBranchRequestSchema,
  DiffBranchRequestSchema,
  GetLsmStatsResponseSchema,
  GetLsmWriteSpecResponseSchema,
} from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { CreateViewResponseSchema, DescribeViewResponseSchema } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import {
  CreateTableBranchRequestSchema,
  DeleteTableBranchRequestSchema,
} from "../gen/lance/namespace/v1/branch_pb.ts";
import {
  CreateTableRequestSchema,
  MergeInsertIntoTableRequestSchema,
  UpdateTableResponseSchema,
} from "../gen/lance/namespace/v1/data_pb.ts";
import { CreateTableIndexRequestSchema } from "../gen/lance/namespace/v1/index_pb.ts";
import {
  CreateNamespaceRequestSchema,
  DescribeNamespaceRequestSchema,
  ListNamespacesRequestSchema,
} from "../gen/lance/namespace/v1/namespace_pb.ts";
import {
  AnalyzeTableQueryPlanRequestSchema,
  FullTextQuerySchema,
  MatchQuerySchema,
  MultiMatchQuerySchema,
  QueryColumnsSchema,
  QueryTableRequestSchema,
  QueryVectorSchema,
} from "../gen/lance/namespace/v1/query_pb.ts";
import {
  AlterTableAddColumnsRequestSchema,
  AlterTableBackfillColumnsRequestSchema,
  JsonArrowDataTypeSchema,
} from "../gen/lance/namespace/v1/schema_pb.ts";
import {
  DescribeTableRequestSchema,
  RenameTableRequestSchema,
  RestoreTableRequestSchema,
} from "../gen/lance/namespace/v1/table_pb.ts";
import {
  CreateTableTagRequestSchema,
  GetTableTagVersionRequestSchema,
  ListTableTagsResponseSchema,
  UpdateTableTagRequestSchema,
} from "../gen/lance/namespace/v1/tag_pb.ts";
import {
  CreateMaterializedViewRequestSchema,
  CreateMaterializedViewResponseSchema,
  RefreshMaterializedViewRequestSchema,
} from "../gen/lance/namespace/v1/view_pb.ts";
import { databaseOfRegion, OF_DATABASES } from "../namespace/call/database-context.ts";
import { LanceError } from "../namespace/errors.ts";
import { isJsonObject } from "../runtime/text.ts";
import { type Dialect, type FieldTexts, form } from "./dialect.ts";
import { readColumns, readFullText, readMatch, readMultiMatch, readVector } from "./lancedb-query.ts";
import {
  absentAs,
  alsoNamed,
  bare,
  defaulted,
  inSpecificationTypes,
  renamed,
  without,
  writeLanceType,
} from "./shapes.ts";

/** The name that clients from 0.41 on give to the log of a table. */
const LOG = { use_rte: "use_lsm" };

const readQuery = (json: unknown) => renamed(LOG)(without(["search_effort"])(json));

/** Requests by which catalogs manage databases. */
const OF_CATALOGS: ReadonlySet<string> = new Set(
  [CreateNamespaceRequestSchema, DescribeNamespaceRequestSchema, ListNamespacesRequestSchema].map(
    ({ typeName }) => typeName,
  ),
);

function writeViewSchema({ schema = "null", ...fields }: FieldTexts): FieldTexts {
  return { ...fields, schema: inSpecificationTypes(schema) };
}

const DELIMITER = /(?:^|&)delimiter=/;

/**
 * LanceDB's remote clients: `lancedb.connect("db://…", host_override=…)` in Python and Rust, and the equivalent in
 * Node.
 *
 * The gateway recognises them by their user agent, which their users can set, or by the header that names the
 * database. They also pass their headers to a client of the specification; that client always sends the delimiter,
 * and they never do.
 */
export const lancedb: Dialect = {
  name: "lancedb",

  recognises({ headers, query }) {
    const agent = headers["user-agent"];
    const named = headers["x-lancedb-database"] !== undefined;
    return (named || (typeof agent === "string" && agent.startsWith("LanceDB-"))) && !DELIMITER.test(query);
  },

  forms: new Map([
    form(QueryVectorSchema, { read: readVector }),
    form(QueryColumnsSchema, { read: readColumns }),
    form(FullTextQuerySchema, { read: readFullText }),
    form(MatchQuerySchema, { read: readMatch }),
    form(MultiMatchQuerySchema, { read: readMultiMatch }),
    form(CreateMaterializedViewRequestSchema, { read: readMaterializedView }),
    form(CreateMaterializedViewResponseSchema, {
      status: ({ jobId }) => (jobId === undefined ? undefined : 202),
    }),
    form(RefreshMaterializedViewRequestSchema, {
      read: (json) => renamed({ source_version: "src_version" })(without(["expected_incarnation"])(json)),
    }),
    form(QueryTableRequestSchema, { read: readQuery }),
    form(AnalyzeTableQueryPlanRequestSchema, { read: readQuery }),
    form(RenameTableRequestSchema, { read: renamed({ new_namespace: "new_namespace_id" }) }),
    form(CreateTableIndexRequestSchema, {
      read: renamed({ metric_type: "distance_type" }),
      // The clients leave it out unless it is false.
      settle(request) {
        request.replace ??= true;
      },
    }),
    // Restoring a table that is not checked out keeps its current version.
    form(RestoreTableRequestSchema, { read: absentAs("version", 0) }),
    // The clients send no flags and need the version and the schema.
    form(DescribeTableRequestSchema, {
      settle(request) {
        request.loadDetailedMetadata ??= true;
      },
    }),
    form(MergeInsertIntoTableRequestSchema, {
      parameters: LOG,
      settle(request) {
        request.useIndex ??= true;
      },
    }),
    // The clients always say whether computed columns may be refreshed by themselves; here only a call does it, which
    // both answers allow.
    form(AlterTableAddColumnsRequestSchema, {
      read: (json) =>
        readFunctionColumns(
          without({
            auto_refresh_interval_seconds:
              "not supported: a computed column is refreshed by refresh_column_async only, and the interval would be without effect",
          })(json),
        ),
    }),
    form(JsonArrowDataTypeSchema, { write: writeLanceType }),
    // The clients read the columns of a view, unlike those of a table, in the words of the specification.
    form(CreateViewResponseSchema, { write: writeViewSchema }),
    form(DescribeViewResponseSchema, { write: writeViewSchema }),
    form(ListTableTagsResponseSchema, { write: bare("tags") }),
    form(GetLsmWriteSpecResponseSchema, {
      write: (fields) => alsoNamed({ lsm_write_spec: "rte_spec" })({ lsm_write_spec: "null", ...fields }),
    }),
    form(GetLsmStatsResponseSchema, { write: defaulted({ lsm_stats: "null", rte_stats: "null" }) }),
    form(UpdateTableResponseSchema, { write: alsoNamed({ updated_rows: "rows_updated" }) }),
  ]),

  errors: [
    { error: "TableAlreadyExists", request: CreateTableRequestSchema.typeName, status: 400 },
    // The clients treat any 404 as a missing table, unless the request concerns only the other object.
    { error: "TableBranchNotFound", request: CreateTableBranchRequestSchema.typeName, status: 404 },
    { error: "TableBranchNotFound", request: DeleteTableBranchRequestSchema.typeName, status: 404 },
    { error: "TableBranchNotFound", request: DiffBranchRequestSchema.typeName, status: 404 },
    { error: "TableBranchNotFound", request: CherryPickBranchRequestSchema.typeName, status: 404 },
    { error: "TableBranchNotFound", status: 400 },
    { error: "TableColumnNotFound", status: 400 },
    // A checkout of a missing tag is a ValueError, as in the library, if this is a 404.
    { error: "TableTagNotFound", request: GetTableTagVersionRequestSchema.typeName, status: 404 },
    { error: "TableTagNotFound", status: 400 },
    // The clients retry a 409 three times, which helps only against other writers.
    { error: "TableTagAlreadyExists", status: 400 },
    { error: "TableIndexAlreadyExists", status: 400 },
    { error: "InvalidTableState", status: 400 },
    { error: "TableVersionNotFound", request: CreateTableTagRequestSchema.typeName, status: 400 },
    { error: "TableVersionNotFound", request: UpdateTableTagRequestSchema.typeName, status: 400 },
    // A function that there is not. Clients before 0.41 treat any 404 as a missing table.
    { error: "TableVersionNotFound", request: AlterTableAddColumnsRequestSchema.typeName, status: 400 },
    { error: "TableVersionNotFound", request: AlterTableBackfillColumnsRequestSchema.typeName, status: 400 },
    // The clients retry a 504 three times. A limit that they set themselves would run out three times.
    {
      error: "DeadlineExceeded",
      request: MergeInsertIntoTableRequestSchema.typeName,
      status: 408,
      text: "merge insert timed out",
    },
    { error: "DeadlineExceeded", status: 408 },
  ],

  // The clients cannot say whether they wait for an index: `create_index` returns when the answer comes, and takes an
  // index without a job for one that is built. Their requests time out after 300 s.
  preferences: new Map([[CreateTableIndexRequestSchema.typeName, "respond-async, wait=60"]]),

  // A connection to a catalog is one to the root, whose namespaces are databases to it; any other one names its database.
  contextOf(request, { headers, host }) {
    const isNamed = headers["x-lancedb-database"] !== undefined || databaseOfRegion(host) !== undefined;
    return isNamed || !OF_CATALOGS.has(request) ? undefined : OF_DATABASES;
  },

  // Features that the clients may use: several vectors in a query, structured full-text queries, multipart writes,
  // blobs. From 0.6.0 on they would also ask for the granularity of documents in full-text search.
  headers: { "phalanx-version": "0.5.0" },
};

/**
 * Reads a new materialized view: the clients send its query alone, and leave the schema of the result to the server.
 */
function readMaterializedView(json: unknown): unknown {
  if (!isJsonObject(json) || json["query"] === undefined) return json;
  const { query, ...rest } = json;
  return { kind: "query", source_query: query, output_schema: "", ...rest };
}

/** The kind of virtual columns that the gateway computes by a function which CreateFunction has stored. */
const STORED_FUNCTION = "lancedb_function";

/**
 * Reads columns that a function computes: the clients send the function beside empty columns, and the specification has a function in each
 * column.
 *
 * @throws LanceError InvalidInput
 */
function readFunctionColumns(json: unknown): unknown {
  if (!isJsonObject(json) || !isJsonObject(json["function"])) return json;
  const { function: own, new_columns: columns, ...rest } = json;
  const { application, outputs, output_schema: schema } = own as Record<string, unknown>;
  const fields = isJsonObject(schema) ? schema["fields"] : undefined;
  if (!isJsonObject(application) || !isJsonObject(application["function"]) || !Array.isArray(columns))
    throw malformed();
  const { name, version, manifest_digest: image } = application["function"] as Record<string, unknown>;
  const inputs = Array.isArray(application["inputs"]) ? application["inputs"] : [];
  const listOf = (value: unknown) => (Array.isArray(value) ? value.filter(isJsonObject) : []);
  const entries = columns.map((column) => {
    const own = isJsonObject(column) ? String(column["name"]) : "";
    const output = listOf(outputs).find((each) => each["output_name"] === own);
    const field = listOf(fields).find((each) => each["name"] === own);
    const target = {
      column: own,
      struct_field: output?.["result_field"] ?? "$value",
      data_type: field?.["type"] ?? {},
      nullable: true,
    };
    const virtual = {
      input_columns: listOf(inputs).map(({ value }) => (isJsonObject(value) ? String(value["path"]) : "")),
      outputs: [target],
      image: String(image),
      udf: "",
      udf_name: String(name),
      udf_version: String(version),
      udf_backend: STORED_FUNCTION,
      manifest: JSON.stringify(application),
    };
    return { name: own, virtual_column: virtual };
  });
  return { ...rest, new_columns: entries };
}

function malformed(): LanceError {
  return new LanceError("InvalidInput", "function must have an application of a function");
}
