import { ListTableBranchesRequestSchema } from "../gen/lance/namespace/v1/branch_pb.ts";
import { IdentitySchema } from "../gen/lance/namespace/v1/common_pb.ts";
import { CreateTableRequestSchema, UpdateTableResponseSchema } from "../gen/lance/namespace/v1/data_pb.ts";
import {
  CreateTableIndexRequestSchema,
  DropTableIndexRequestSchema,
} from "../gen/lance/namespace/v1/index_pb.ts";
import {
  AnalyzeTableQueryPlanRequestSchema,
  FullTextQuerySchema,
  MultiMatchQuerySchema,
  QueryColumnsSchema,
  QueryTableRequestSchema,
  QueryVectorSchema,
} from "../gen/lance/namespace/v1/query_pb.ts";
import { JsonArrowDataTypeSchema } from "../gen/lance/namespace/v1/schema_pb.ts";
import {
  DescribeTableRequestSchema,
  DropTableRequestSchema,
  RenameTableRequestSchema,
} from "../gen/lance/namespace/v1/table_pb.ts";
import { ListTableTagsRequestSchema, ListTableTagsResponseSchema } from "../gen/lance/namespace/v1/tag_pb.ts";
import { ListTableVersionsRequestSchema } from "../gen/lance/namespace/v1/version_pb.ts";
import type { ErrorName } from "../namespace/errors.ts";
import { type FieldTexts, form, type MessageForm } from "./dialect.ts";
import { readLanceType } from "./lance-types.ts";
import { writeColumns, writeFullText, writeMultiMatch, writeVector } from "./lancedb-query.ts";
import { alsoNamed, atMost, defaulted, renamed, wrappedUnless } from "./shapes.ts";

/** An error that an upstream tells in another way than by its code. The first row that fits counts. */
export interface UpstreamErrorForm {
  /** The HTTP statuses that it comes with. */
  readonly statuses: readonly number[];
  /** The codes of the body that the row goes for; undefined stands for a body without a code. */
  readonly codes: readonly (number | undefined)[];
  /** What the body's text has. */
  readonly text: RegExp;
  /** The full name of the request's type; without it, all of them. */
  readonly request?: string;
  readonly error: ErrorName;
}

/** What a kind of upstream expects of its clients, declared as data. */
export interface UpstreamForm {
  readonly name: string;
  /** How requests are written, and what answers are read as; by the full name of the message's type. */
  readonly forms: ReadonlyMap<string, MessageForm>;
  /** Types of requests that have no body: what they say is in the query. */
  readonly bodiless: ReadonlySet<string>;
  /** Fields that are in the query beside the body, by the type of the request and their local names. */
  readonly alsoInQuery: ReadonlyMap<string, readonly string[]>;
  /** Whether every request says what joins the names in its path. */
  readonly tellsDelimiter: boolean;
  /** The beginning of the paths that end with a slash; undefined when none do. */
  readonly slashedPaths: string | undefined;
  readonly errors: readonly UpstreamErrorForm[];
}

/** Whatever the upstream is, its answers are understood in either shape, and credentials are in headers only. */
const COMMON: readonly (readonly [string, MessageForm])[] = [
  form(IdentitySchema, { write: () => "null" }),
  form(ListTableTagsResponseSchema, { read: wrappedUnless("tags") }),
  form(UpdateTableResponseSchema, { read: renamed({ rows_updated: "updated_rows" }) }),
  form(JsonArrowDataTypeSchema, { read: readLanceType }),
];

/** A server that cannot pass on what its own upstream refused, or that lacks an operation. */
const ERRORS: readonly UpstreamErrorForm[] = [
  {
    statuses: [500, 501, 502],
    codes: [undefined, 0, 18],
    text: /\b401\b|\bunauthori[sz]ed\b|\bunauthenticated\b/i,
    error: "Unauthenticated",
  },
  // The Rust adapter answers so for an operation that its backend lacks.
  { statuses: [500], codes: [18], text: /Not supported: .*not implemented/s, error: "Unsupported" },
];

/** The specification requires both, and the Rust adapter reads 32 bits. */
function writeQuery(fields: FieldTexts): FieldTexts {
  return defaulted({ vector: "{}", k: "0" })(atMost("k", 2 ** 31 - 1)(fields));
}

/** A server of the public specification: the Rust adapter and other gateways, too. */
const plain: UpstreamForm = {
  name: "specification",
  forms: new Map([
    ...COMMON,
    form(QueryTableRequestSchema, { write: writeQuery }),
    form(AnalyzeTableQueryPlanRequestSchema, { write: writeQuery }),
  ]),
  bodiless: new Set(
    [
      DropTableRequestSchema,
      DropTableIndexRequestSchema,
      ListTableVersionsRequestSchema,
      ListTableTagsRequestSchema,
      ListTableBranchesRequestSchema,
    ].map(({ typeName }) => typeName),
  ),
  alsoInQuery: new Map([
    [DescribeTableRequestSchema.typeName, ["withTableUri", "loadDetailedMetadata", "checkDeclared"]],
  ]),
  tellsDelimiter: true,
  slashedPaths: undefined,
  errors: ERRORS,
};

/** What its clients send where they mean all rows: the largest integer of 64 bits. */
const ALL_ROWS = "9223372036854775807";

/** LanceDB's own service, as its remote clients speak to it. */
const lancedb: UpstreamForm = {
  ...plain,
  name: "lancedb",
  forms: new Map([
    ...COMMON,
    form(QueryTableRequestSchema, { write: defaulted({ vector: "[]", k: ALL_ROWS }) }),
    form(AnalyzeTableQueryPlanRequestSchema, { write: defaulted({ vector: "[]", k: ALL_ROWS }) }),
    form(QueryVectorSchema, { write: writeVector }),
    form(QueryColumnsSchema, { write: writeColumns }),
    form(FullTextQuerySchema, { write: writeFullText }),
    form(MultiMatchQuerySchema, { write: writeMultiMatch }),
    form(RenameTableRequestSchema, { write: alsoNamed({ new_namespace_id: "new_namespace" }) }),
    form(CreateTableIndexRequestSchema, { write: alsoNamed({ distance_type: "metric_type" }) }),
  ]),
  alsoInQuery: new Map(),
  tellsDelimiter: false,
  slashedPaths: "/v1/table",
  errors: [
    {
      statuses: [400],
      codes: [undefined],
      text: /already exists/,
      request: CreateTableRequestSchema.typeName,
      error: "TableAlreadyExists",
    },
    ...ERRORS,
  ],
};

/** Every kind of upstream, by its name in the configuration. */
export const UPSTREAM_FORMS = { specification: plain, lancedb } as const satisfies Record<
  string,
  UpstreamForm
>;
