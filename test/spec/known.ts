/** Where the contract differs from the document on purpose, each with its reason. */
export const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {
  "MergeInsertIntoTable parameter on: string there, a list here":
    "later releases of the document take several, as a repeated parameter; a single one is the same in both",
  "MergeInsertIntoTableRequest.on: string there, a list here": "as the parameter",
  "MergeInsertIntoTableRequest.on: optional there, required here": "the parameter is required there, too",
  "QueryTableRequest.k: required there, optional here": "a plain scan has no number of neighbours",
  "QueryTableRequest.vector: required there, optional here":
    "a plain scan and a search for words have no vector",
  "AnalyzeTableQueryPlanRequest.k: required there, optional here": "as in QueryTableRequest",
  "AnalyzeTableQueryPlanRequest.vector: required there, optional here": "as in QueryTableRequest",
  "CreateTable parameter mode: no spellings there, an enum here": "CreateTableRequest.mode has the spellings",
  "IndexContent.created_at: date-time string there, STRING here":
    "the text is handed through; it is in RFC 3339",
  "DescribeTableIndexStatsRequest.index_name: optional there, required here": "the path has it in REST",
  "DescribeTableIndexStatsRequest.index_name: may be absent there, cannot be told from its zero here":
    "an index without a name does not exist",
  "DropTableIndexRequest.index_name: optional there, required here": "the path has it in REST",
  "DropTableIndexRequest.index_name: may be absent there, cannot be told from its zero here":
    "an index without a name does not exist",
  "QueryTableResponse.data: binary string there, HttpBody here":
    "its bytes are the whole body in REST, in both",
};

/** Schemas of the document that match nothing in the contract. */
export const KNOWN_UNMATCHED: Readonly<Record<string, string>> = {
  PartitionTransform: "no operation of the document refers to it",
  PartitionField: "no operation of the document refers to it",
  PartitionSpec: "no operation of the document refers to it",
};

const LATER = "from the document's release 0.13.0";
const LANCEDB = "LanceDB's clients send it";
const JOB = "LanceDB's clients await the job";
const FETCHED = "reading by GET";
const POSTED = "clients of other generations send the parameters as a body";

/** Parts of the contract that the document lacks, each with its reason. */
export const KNOWN_ADDITIONS: Readonly<Record<string, string>> = {
  ...indexParameters("CreateTableIndexRequest"),
  ...indexParameters("CreateTableScalarIndexRequest"),
  "CreateTableIndexResponse.job_id": JOB,
  "CreateTableScalarIndexResponse.job_id": JOB,
  "DeleteFromTableResponse.num_deleted_rows": "LanceDB's clients read it",
  "InsertIntoTableRequest.upload_id": LANCEDB,
  "InsertIntoTableRequest.upload_part_id": LANCEDB,
  "JsonArrowDataType.logical_type": "LanceDB's clients know types by these names only",
  "ErrorResponse.type": "the document's examples of error bodies have it",
  "ErrorResponse.title": "the document's examples of error bodies have it",
  "ErrorResponse.status": "the document's examples of error bodies have it",
  "ErrorResponse.kind": "errors of our own borrow a code and share a status",
  "ListAllTablesRequest.identity": "every other request has it",
  "ListAllTablesRequest.context": "every other request has it",
  "QueryTableRequest.minimum_nprobes": LATER,
  "QueryTableRequest.maximum_nprobes": LATER,
  "QueryTableRequest.order_by": LANCEDB,
  "RefreshMaterializedViewRequest.full": LANCEDB,
  "MatchQuery.auto_fuzziness": LANCEDB,
  "MatchQuery.document_granularity": LANCEDB,
  "PhraseQuery.document_granularity": LANCEDB,
  "QueryTableRequest.use_lsm": LANCEDB,
  "QueryTableRequest.approx_mode": LANCEDB,
  "AnalyzeTableQueryPlanRequest.use_lsm": LANCEDB,
  "AnalyzeTableQueryPlanRequest.approx_mode": LANCEDB,
  "MergeInsertIntoTableRequest.use_lsm": LANCEDB,
  "MergeInsertIntoTableResponse.num_attempts": LANCEDB,
  "MergeInsertIntoTableResponse.num_rows": LANCEDB,
  "AnalyzeTableQueryPlanRequest.minimum_nprobes": LATER,
  "AnalyzeTableQueryPlanRequest.maximum_nprobes": LATER,
  "AnalyzeTableQueryPlanRequest.order_by": LANCEDB,
  "ListNamespaces POST /v1/namespace/{identifier}/list": POSTED,
  "ListTables POST /v1/namespace/{identifier}/table/list": POSTED,
  "ListAllTables POST /v1/table": POSTED,
  "ListTableVersions GET /v1/table/{identifier}/version/list": FETCHED,
  "GetTableStats GET /v1/table/{identifier}/stats": FETCHED,
  "CountTableRows GET /v1/table/{identifier}/count_rows": FETCHED,
  "RefreshMaterializedView POST /v1/table/{identifier}/refresh":
    "a view is a table, and the Rust adapter has the route",
  "ListTableIndices GET /v1/table/{identifier}/index/list": FETCHED,
  "DescribeTableIndexStats GET /v1/table/{identifier}/index/{index_name}/stats": FETCHED,
  "ListTableTags GET /v1/table/{identifier}/tags/list": FETCHED,
  "ListTableBranches GET /v1/table/{identifier}/branches/list": FETCHED,
};

/** Parameters of full-text indexes that the engine has, and the switch that replaces an index. */
function indexParameters(message: string): Record<string, string> {
  const names = [
    "block_size",
    "custom_stop_words",
    "min_ngram_length",
    "max_ngram_length",
    "prefix_only",
    "replace",
    "lance_tokenizer",
    "split_identifiers",
    "split_on_numerics",
    "preserve_original",
    "index_operators",
    "document_granularity",
    "number_of_items",
    "probability",
  ];
  return Object.fromEntries(names.map((name) => [`${message}.${name}`, LANCEDB]));
}
