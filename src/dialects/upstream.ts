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
import { checkNearest, DEFAULT_SEARCH_ROWS } from "../namespace/search-rows.ts";
import { type FieldTexts, form, type MessageForm } from "./dialect.ts";
import { writeColumns, writeFullText, writeMultiMatch, writeVector } from "./lancedb-query.ts";
import { alsoNamed, atMost, defaulted, readLanceType, renamed, wrappedUnless } from "./shapes.ts";

/** An error that an upstream reports in another way than by its code. The first row that matches counts. */
export interface UpstreamErrorForm {
  /** HTTP statuses of the answer. */
  readonly statuses: readonly number[];
  /** Codes of the body to which the row applies; undefined means a body without a code. */
  readonly codes: readonly (number | undefined)[];
  /** Pattern of the body's text. */
  readonly text: RegExp;
  /** Full name of the request's type. Default: all types. */
  readonly request?: string;
  readonly error: ErrorName;
}

/** How a kind of upstream deviates from the specification, declared as data. */
export interface UpstreamForm {
  readonly name: string;
  /** How requests are written and answers are read, by the full name of the message's type. */
  readonly forms: ReadonlyMap<string, MessageForm>;
  /** Types of requests that have no body: their parameters are in the query. */
  readonly bodiless: ReadonlySet<string>;
  /** Fields that are in the query in addition to the body, by the type of the request and their local names. */
  readonly alsoInQuery: ReadonlyMap<string, readonly string[]>;
  /** Whether every request names the delimiter of its path. */
  readonly tellsDelimiter: boolean;
  /** Prefix of the paths that end with a slash; undefined if none do. */
  readonly slashedPaths: string | undefined;
  readonly errors: readonly UpstreamErrorForm[];
}

/** The gateway accepts answers of every upstream in either shape, and sends credentials only in headers. */
const COMMON: readonly (readonly [string, MessageForm])[] = [
  form(IdentitySchema, { write: () => "null" }),
  form(ListTableTagsResponseSchema, { read: wrappedUnless("tags") }),
  form(UpdateTableResponseSchema, { read: renamed({ rows_updated: "updated_rows" }) }),
  form(JsonArrowDataTypeSchema, { read: readLanceType }),
];

/** A server that cannot pass on its own upstream's refusal, or that lacks an operation. */
const ERRORS: readonly UpstreamErrorForm[] = [
  {
    statuses: [500, 501, 502],
    codes: [undefined, 0, 18],
    text: /\b401\b|\bunauthori[sz]ed\b|\bunauthenticated\b/i,
    error: "Unauthenticated",
  },
  // The Rust adapter's answer for an operation that its backend lacks.
  { statuses: [500], codes: [18], text: /Not supported: .*not implemented/s, error: "Unsupported" },
];

/** The value with which the specification's clients request all rows: the largest integer of 32 bits, which the Rust adapter reads. */
const MOST_ROWS = 2 ** 31 - 1;

/** The specification requires a vector and a number of rows. The Rust adapter takes 0 for all rows of a scan, and for 10 of a search. */
function writeQuery(fields: FieldTexts): FieldTexts {
  if (fields["k"] === "0") {
    if (searchesVectors(fields)) checkNearest(0n);
    return { vector: "{}", ...fields, k: "1", filter: '"false"' };
  }
  const k = String(isSearchIn(fields) ? DEFAULT_SEARCH_ROWS : MOST_ROWS);
  return defaulted({ vector: "{}", k })(atMost("k", MOST_ROWS)(fields));
}

/** Writes a choice of no columns as an empty list, which the codec would leave out. */
function writeNames(fields: FieldTexts): FieldTexts {
  return fields["column_aliases"] === undefined ? defaulted({ column_names: "[]" })(fields) : fields;
}

/** Writes a query for LanceDB's service, whose clients send the vector and the number of rows of each. */
function writeLanceDbQuery(fields: FieldTexts): FieldTexts {
  return defaulted({ vector: "[]", k: isSearchIn(fields) ? String(DEFAULT_SEARCH_ROWS) : ALL_ROWS })(fields);
}

/** Whether a written query searches for vectors or words. */
function isSearchIn(fields: FieldTexts): boolean {
  return fields["full_text_query"] !== undefined || searchesVectors(fields);
}

function searchesVectors({ vector = "{}" }: FieldTexts): boolean {
  return /\d/.test(vector);
}

/** A server of the public specification, including the Rust adapter and other gateways. */
const plain: UpstreamForm = {
  name: "specification",
  forms: new Map([
    ...COMMON,
    form(QueryTableRequestSchema, { write: writeQuery }),
    form(AnalyzeTableQueryPlanRequestSchema, { write: writeQuery }),
    form(QueryColumnsSchema, { write: writeNames }),
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

/** The value with which its clients request all rows: the largest integer of 64 bits. */
const ALL_ROWS = "9223372036854775807";

/** LanceDB's own service, as its remote clients call it. */
const lancedb: UpstreamForm = {
  ...plain,
  name: "lancedb",
  forms: new Map([
    ...COMMON,
    form(QueryTableRequestSchema, { write: writeLanceDbQuery }),
    form(AnalyzeTableQueryPlanRequestSchema, { write: writeLanceDbQuery }),
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
