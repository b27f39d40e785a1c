import { KNOWN_ADDITIONS } from "./known.ts";

const EMPTY_BODY = "the body may be empty, and older clients send one";
const NO_BODY = "the answer has no body";
const IN_PARTS = "the body is Arrow, or a field of the message, so no body has the whole message";
const UNUSED = "no operation of the specification refers to it";
const PLAIN_SCAN = "a plain scan and a search for words have neither";
const IN_PATH = "the path has it";
const ANY_JSON = "any JSON value is read, of which objects are the usual one";

/** Where the gateway's document differs from the public one on purpose, each with its reason. */
export const OPENAPI_DIFFERENCES: Readonly<Record<string, string>> = {
  "DropTable request: none there": EMPTY_BODY,
  "ListTableVersions request: none there": EMPTY_BODY,
  "DropTableIndex request: none there": EMPTY_BODY,
  "ListTableTags request: none there": EMPTY_BODY,
  "ListTableBranches request: none there": EMPTY_BODY,
  "MergeInsertIntoTable parameter on: string there, array here":
    "later releases of the specification take several, as a repeated parameter; a single one is equal in both",
  "CreateTable parameter mode:  there, create, existok, overwrite here":
    "the specification lists the values for the message only",
  "NamespaceExistsResponse: missing here": NO_BODY,
  "TableExistsResponse: missing here": NO_BODY,
  "CountTableRowsResponse: missing here": IN_PARTS,
  "InsertIntoTableRequest: missing here": IN_PARTS,
  "MergeInsertIntoTableRequest: missing here": IN_PARTS,
  "QueryTableResponse: missing here": IN_PARTS,
  "CreateTableRequest: missing here": IN_PARTS,
  "UpdateTableSchemaMetadataRequest: missing here": IN_PARTS,
  "UpdateTableSchemaMetadataResponse: missing here": IN_PARTS,
  "ExplainTableQueryPlanResponse: missing here": IN_PARTS,
  "AnalyzeTableQueryPlanResponse: missing here": IN_PARTS,
  "QueryTableRequest.k: required there, optional here": PLAIN_SCAN,
  "QueryTableRequest.vector: required there, optional here": PLAIN_SCAN,
  "AnalyzeTableQueryPlanRequest.k: required there, optional here": PLAIN_SCAN,
  "AnalyzeTableQueryPlanRequest.vector: required there, optional here": PLAIN_SCAN,
  "IndexContent.created_at: date-time there, no format here": "the gateway passes the text of the backend on",
  "DescribeTableIndexStatsRequest.index_name: missing here": IN_PATH,
  "DropTableIndexRequest.index_name: missing here": IN_PATH,
  "AddVirtualColumnOutputEntry.data_type: object there, undefined here": ANY_JSON,
  "AlterColumnsEntry.data_type: object there, undefined here": ANY_JSON,
  "MaterializedViewUdtfEntry.error_handling: object there, undefined here": ANY_JSON,
  "PartitionTransform: missing here": UNUSED,
  "PartitionField: missing here": UNUSED,
  "PartitionSpec: missing here": UNUSED,
};

const CONTEXT = "a request without a JSON body has its context in the query";
const LANCEDB = "LanceDB's clients send it";
const ROUTE = "clients of other generations call it, or it reads by GET";

/** Parts of the gateway's document that the public one lacks, each with its reason. */
export const OPENAPI_ADDITIONS: Readonly<Record<string, string>> = {
  ...additionsOfSchemas(),
  "ListNamespaces parameter context": CONTEXT,
  "ListTables parameter context": CONTEXT,
  "ListAllTables parameter context": CONTEXT,
  "UpdateTableSchemaMetadata parameter context": CONTEXT,
  "InsertIntoTable parameter context": CONTEXT,
  "MergeInsertIntoTable parameter context": CONTEXT,
  "CreateTable parameter context": CONTEXT,
  "InsertIntoTable parameter upload_id": LANCEDB,
  "InsertIntoTable parameter upload_part_id": LANCEDB,
  "MergeInsertIntoTable parameter use_lsm": LANCEDB,
  "POST /v1/namespace/{id}/list": ROUTE,
  "POST /v1/namespace/{id}/table/list": ROUTE,
  "POST /v1/table": ROUTE,
  "GET /v1/table/{id}/version/list": ROUTE,
  "GET /v1/table/{id}/stats": ROUTE,
  "GET /v1/table/{id}/count_rows": ROUTE,
  "POST /v1/table/{id}/refresh": ROUTE,
  "GET /v1/table/{id}/index/list": ROUTE,
  "GET /v1/table/{id}/index/{index_name}/stats": ROUTE,
  "GET /v1/table/{id}/tags/list": ROUTE,
  "GET /v1/table/{id}/branches/list": ROUTE,
};

/** The contract's additions to messages that are whole bodies in the document. */
function additionsOfSchemas(): Record<string, string> {
  const isInSchema = (place: string) => {
    const [name = ""] = place.split(".");
    if (place.includes(" ")) return false;
    // Only an additional route has this message as its body.
    return name !== "ListAllTablesRequest" && OPENAPI_DIFFERENCES[`${name}: missing here`] === undefined;
  };
  return Object.fromEntries(Object.entries(KNOWN_ADDITIONS).filter(([place]) => isInSchema(place)));
}
