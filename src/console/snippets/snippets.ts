import type { requestOf } from "../query/query-form.ts";
import type { Credential } from "../session/credential.ts";

/** Call that a snippet makes. */
export interface SnippetQuery extends ReturnType<typeof requestOf> {
  readonly id: readonly string[];
  readonly version?: bigint | undefined;
  readonly branch?: string | undefined;
}

/** The gateway of a snippet, and how its user signs in; the secret itself stays out of it. */
export interface SnippetPlace {
  /** Address, such as `http://localhost:2333`. */
  readonly uri: string;
  readonly credential: Credential["kind"] | undefined;
  readonly database: string | undefined;
}

/** Variable of the environment that has the credential. */
const VARIABLE = "LANCE_GATEWAY_API_KEY";

/** Languages and tools of snippets. */
export const SNIPPETS = {
  Python: pythonOf,
  "Node.js": nodeOf,
  curl: curlOf,
  gRPC: grpcOf,
} as const;

function pythonOf(place: SnippetPlace, query: SnippetQuery): string {
  const { vector, fullTextQuery, filter, columns, k } = query;
  const [name, namespace] = [query.id.at(-1) ?? "", query.id.slice(0, -1)];
  const literal = (value: unknown) => JSON.stringify(value);
  const path = namespace.length > 0 ? `, namespace_path=${literal(namespace)}` : "";
  const key = place.credential === undefined ? '"none"' : `os.environ["${VARIABLE}"]`;
  const vectorColumn = query.vectorColumn && `vector_column_name=${literal(query.vectorColumn)}`;
  const numbers = `[${vector?.join(", ")}]`;
  const isHybrid = vector !== undefined && fullTextQuery !== undefined;
  const subject = isHybrid
    ? ['query_type="hybrid"', vectorColumn]
    : vector
      ? [numbers, vectorColumn]
      : fullTextQuery
        ? [literal(fullTextQuery), 'query_type="fts"']
        : [];
  return [
    ...(place.credential === undefined ? [] : ["import os", ""]),
    "import lancedb",
    "",
    `db = lancedb.connect("db://${place.database ?? "any"}", api_key=${key}, host_override=${literal(place.uri)})`,
    `table = db.open_table(${literal(name)}${path})`,
    ...(query.version === undefined ? [] : [`table.checkout(${query.version})`]),
    "rows = (",
    `    table.search(${subject.filter(Boolean).join(", ")})`,
    ...(isHybrid ? [`    .vector(${numbers})`, `    .text(${literal(fullTextQuery)})`] : []),
    ...(query.distanceType ? [`    .distance_type(${literal(query.distanceType)})`] : []),
    ...(filter ? [`    .where(${literal(filter)})`] : []),
    ...(columns ? [`    .select(${literal(columns)})`] : []),
    `    .limit(${k})`,
    "    .to_arrow()",
    ")",
    "print(rows)",
    "",
  ].join("\n");
}

function nodeOf(place: SnippetPlace, { id, version, branch, ...query }: SnippetQuery): string {
  const properties = {
    uri: place.uri,
    ...(place.database && { "headers.x-service-database": place.database }),
  };
  const credential =
    place.credential === "api-key"
      ? `, "headers.x-api-key": process.env.${VARIABLE}`
      : place.credential === "token"
        ? `, "headers.authorization": \`Bearer \${process.env.${VARIABLE}}\``
        : "";
  const literal = JSON.stringify(properties).slice(0, -1);
  const request = JSON.stringify({ id, ...(branch && { branch }), ...query }).slice(0, -1);
  return [
    'import { connect } from "lance-gateway";',
    "",
    `const namespace = await connect("connect", ${literal}${credential} });`,
    `const result = namespace.queryTable(${request}${version === undefined ? "" : `, version: ${version}n`} });`,
    "console.table(await result.toArray());",
    "await namespace.close();",
    "",
  ].join("\n");
}

function curlOf(place: SnippetPlace, { id, ...query }: SnippetQuery): string {
  const path = id.map(encodeURIComponent).join("%24");
  return [
    `curl -X POST ${shellText(`${place.uri}/v1/table/${path}/query`)}`,
    ...headersOf(place).map((header) => `-H ${header}`),
    "-H 'content-type: application/json' -H 'accept: application/json'",
    `-d ${shellText(JSON.stringify(restQuery(query)))}`,
  ].join(" \\\n  ");
}

function grpcOf(place: SnippetPlace, { id, ...query }: SnippetQuery): string {
  const { protocol, host } = new URL(place.uri);
  const message = JSON.stringify({ id, ...restQuery(query) });
  return [
    `grpcurl ${protocol === "https:" ? "" : "-plaintext "}-d ${shellText(message)}`,
    ...headersOf(place).map((header) => `-H ${header}`),
    `${host} lance.namespace.v1.LanceNamespaceService/QueryTable`,
  ].join(" \\\n  ");
}

/** Returns a query as REST, and protobuf's JSON, which reads the same names, have it. */
function restQuery({
  vector,
  vectorColumn,
  distanceType,
  fullTextQuery,
  version,
  ...rest
}: Omit<SnippetQuery, "id">) {
  return {
    ...rest,
    ...(version !== undefined && { version: Number(version) }),
    ...(vector && { vector: { single_vector: vector } }),
    ...(vectorColumn && { vector_column: vectorColumn }),
    ...(distanceType && { distance_type: distanceType }),
    ...(fullTextQuery && { full_text_query: { string_query: { query: fullTextQuery } } }),
    ...(rest.columns && { columns: { column_names: rest.columns } }),
  };
}

/** Returns the headers of a call as words of a shell. */
function headersOf({ credential, database }: SnippetPlace): string[] {
  return [
    ...(credential === "api-key" ? [`"x-api-key: $${VARIABLE}"`] : []),
    ...(credential === "token" ? [`"authorization: Bearer $${VARIABLE}"`] : []),
    ...(database ? [shellText(`x-service-database: ${database}`)] : []),
  ];
}

function shellText(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
