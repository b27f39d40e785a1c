import { GetLsmWriteSpecResponseSchema } from "../gen/lance/gateway/v1/lancedb_pb.ts";
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
  AnalyzeTableQueryPlanRequestSchema,
  FullTextQuerySchema,
  MatchQuerySchema,
  MultiMatchQuerySchema,
  QueryColumnsSchema,
  QueryTableRequestSchema,
  QueryVectorSchema,
} from "../gen/lance/namespace/v1/query_pb.ts";
import { JsonArrowDataTypeSchema } from "../gen/lance/namespace/v1/schema_pb.ts";
import {
  DescribeTableRequestSchema,
  RenameTableRequestSchema,
  RestoreTableRequestSchema,
} from "../gen/lance/namespace/v1/table_pb.ts";
import {
  CreateTableTagRequestSchema,
  ListTableTagsResponseSchema,
  UpdateTableTagRequestSchema,
} from "../gen/lance/namespace/v1/tag_pb.ts";
import {
  CreateMaterializedViewRequestSchema,
  CreateMaterializedViewResponseSchema,
  RefreshMaterializedViewRequestSchema,
} from "../gen/lance/namespace/v1/view_pb.ts";
import { type Dialect, form } from "./dialect.ts";
import { writeLanceType } from "./lance-types.ts";
import { readColumns, readFullText, readMatch, readMultiMatch, readVector } from "./lancedb-query.ts";
import { readMaterializedView } from "./lancedb-view.ts";
import { absentAs, alsoNamed, bare, defaulted, renamed, without } from "./shapes.ts";

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
      read: (json) => renamed({ source_version: "src_version" })(without("expected_incarnation")(json)),
    }),
    form(QueryTableRequestSchema, { read: without("search_effort", "use_rte") }),
    form(AnalyzeTableQueryPlanRequestSchema, { read: without("search_effort", "use_rte") }),
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
      settle(request) {
        request.useIndex ??= true;
      },
    }),
    form(JsonArrowDataTypeSchema, { write: writeLanceType }),
    form(ListTableTagsResponseSchema, { write: bare("tags") }),
    form(GetLsmWriteSpecResponseSchema, { write: defaulted({ lsm_write_spec: "null" }) }),
    form(UpdateTableResponseSchema, { write: alsoNamed({ updated_rows: "rows_updated" }) }),
  ]),

  errors: [
    { error: "TableAlreadyExists", request: CreateTableRequestSchema.typeName, status: 400 },
    // The clients treat any 404 as a missing table, unless the request concerns only the other object.
    { error: "TableBranchNotFound", request: CreateTableBranchRequestSchema.typeName, status: 404 },
    { error: "TableBranchNotFound", request: DeleteTableBranchRequestSchema.typeName, status: 404 },
    { error: "TableBranchNotFound", status: 400 },
    { error: "TableColumnNotFound", status: 400 },
    { error: "TableTagNotFound", status: 400 },
    // The clients retry a 409 three times, which helps only against other writers.
    { error: "TableTagAlreadyExists", status: 400 },
    { error: "TableIndexAlreadyExists", status: 400 },
    { error: "InvalidTableState", status: 400 },
    { error: "TableVersionNotFound", request: CreateTableTagRequestSchema.typeName, status: 400 },
    { error: "TableVersionNotFound", request: UpdateTableTagRequestSchema.typeName, status: 400 },
    // The clients retry a 504 three times. A limit that they set themselves would run out three times.
    { error: "DeadlineExceeded", status: 408 },
  ],

  // The clients cannot say whether they wait for an index: `create_index` returns when the answer comes, and takes an
  // index without a job for one that is built. Their requests time out after 300 s.
  preferences: new Map([[CreateTableIndexRequestSchema.typeName, "respond-async, wait=60"]]),

  // Features that the clients may use: several vectors in a query, structured full-text queries, multipart writes,
  // blobs. From 0.6.0 on they would also ask for the granularity of documents in full-text search.
  headers: { "phalanx-version": "0.5.0" },
};
