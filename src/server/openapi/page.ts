import { ROW_TYPES } from "../../arrow/ipc/ipc-forms.ts";
import type { OpenApiDocument } from "./document.ts";

/** Text of HTML; nothing else may be put into a page unescaped. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Part[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Tag of templates that escapes every value that is not HTML itself; undefined is nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + textOf(parts[index - 1]) + string));
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(textOf).join("");
  return part === undefined ? "" : String(part).replaceAll(/[&<>"']/g, (each) => ENTITIES[each] as string);
}

/** Returns a comment of the contract, whose words in backquotes are code. */
export function prose(comment = ""): Html[] {
  return comment.split("\n\n").map((paragraph) => {
    const pieces = paragraph.split(/`([^`]*)`/);
    return html`<p>${pieces.map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : piece))}</p>`;
  });
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** Returns the page that shows a document, and from which its calls can be tried. */
export function renderPage(document: OpenApiDocument): string {
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation: operation as Operation })),
  );
  const { title, version } = document.info;
  const schemas = Object.entries(document.components["schemas"] ?? {}) as [string, Schema][];
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="/docs/docs.css">
<script type="module" src="/docs/docs.js"></script>
</head>
<body>
<header>
<h1>${title}</h1>
<p>Lance Gateway ${version}. Programs read the API at <a href="/openapi.json">/openapi.json</a>, in OpenAPI 3.1.</p>
${credentialFields(document)}
<label>Filter the operations <input id="filter" type="search"></label>
</header>
<main>
${[...Map.groupBy(routes, ({ operation }) => operation.tags[0] ?? "")].map(
  ([tag, all]) => html`<h2>${tag}</h2>\n${all.map(operationSection)}`,
)}
<h2>Schemas</h2>
${schemas.map(([name, schema]) => schemaSection(name, schema))}
</main>
</body>
</html>
`;
  return page.text;
}

/** Headers of credentials, by the names of their schemes. */
const CREDENTIALS: Readonly<Record<string, Html>> = {
  ApiKey: html`<label>API key <input name="x-api-key" type="password" autocomplete="off"></label>`,
  Token: html`<label>Token <input name="authorization" data-prefix="Bearer " type="password" autocomplete="off"></label>`,
};

function credentialFields({ components }: OpenApiDocument): Html | undefined {
  const fields = Object.keys(components["securitySchemes"] ?? {}).flatMap((name) => CREDENTIALS[name] ?? []);
  return fields.length === 0 ? undefined : html`<form id="credentials">${fields}</form>`;
}

function operationSection({
  method,
  path,
  operation,
}: {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}): Html {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const [mediaType, body] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const hasRows = Object.values(responses).some(({ content = {} }) => ROW_TYPES.lines in content);
  return html`<details class="operation" id="${operationId}">
<summary><span class="method">${method.toUpperCase()}</span> <code>${path}</code> ${summary}</summary>
${prose(description)}
${table(
  ["Parameter", "In", "Type", "Meaning"],
  parameters.map((each) => [
    nameOf(each.name, each.required),
    each.in,
    typeOf(each.schema),
    prose(each.description),
  ]),
)}
${body && html`<p>Body: ${mediaType} ${typeOf(body.schema)}</p>`}
${table(
  ["Status", "Meaning", "Body"],
  Object.entries(responses).map(([status, answer]) => [
    status,
    answer.description,
    Object.entries(answer.content ?? {}).map(([type, { schema }]) => html`${type} ${typeOf(schema)}<br>`),
  ]),
)}
${hasRows ? rowSnippets(path) : undefined}
<form class="try" data-method="${method.toUpperCase()}" data-path="${path}" ${hasRows ? new Html(`data-accept="${ROW_TYPES.lines}"`) : undefined}>
${parameters.map(
  ({ name, in: place, required, schema }) =>
    html`<label>${name} <input name="${name}" data-in="${place}" ${required ? new Html("required") : undefined} ${
      schema?.type === "array" ? new Html('data-many="true"') : undefined
    }></label>`,
)}
${mediaType && bodyField(mediaType)}
<button>Send</button>
<pre><output></output></pre>
</form>
</details>
`;
}

function bodyField(mediaType: string): Html {
  if (mediaType !== "application/json")
    return html`<label>Body, a file of Arrow <input type="file" data-body="${mediaType}"></label>`;
  return html`<label>Body, JSON <textarea rows="6" spellcheck="false" data-body="${mediaType}">{}</textarea></label>`;
}

function schemaSection(name: string, { description, properties = {}, required = [] }: Schema): Html {
  return html`<details id="schema-${name}">
<summary><code>${name}</code></summary>
${prose(description)}
${table(
  ["Property", "Type", "Meaning"],
  Object.entries(properties).map(([property, schema]) => [
    nameOf(property, required.includes(property)),
    typeOf(schema),
    prose(schema.description),
  ]),
)}
</details>
`;
}

function nameOf(name: string, isRequired: boolean): Html {
  return html`<code>${name}</code>${isRequired ? " (required)" : ""}`;
}

function table(
  heads: readonly string[],
  rows: readonly (readonly (Html | string | readonly Html[])[])[],
): Html | undefined {
  if (rows.length === 0) return undefined;
  const row = (cells: readonly (Html | string | readonly Html[])[]) =>
    html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`;
  const head = heads.map((each) => html`<th scope="col">${each}</th>`);
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${rows.map(row)}</tbody></table></div>`;
}

function typeOf(schema: Schema = {}): Html {
  const { $ref, enum: values, items, additionalProperties, anyOf, type = "any", format } = schema;
  const name = $ref?.split("/").at(-1);
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`;
  if (values !== undefined) return html`${values.join(", ")}`;
  if (anyOf !== undefined)
    return html`${anyOf.map((each, index) => html`${index > 0 ? " or " : ""}${typeOf(each)}`)}`;
  if (items) return html`list of ${typeOf(items)}`;
  if (additionalProperties) return html`map to ${typeOf(additionalProperties)}`;
  return html`${format ?? type}`;
}

const TYPES = { accept: ROW_TYPES.lines, "content-type": "application/json" };
const BODY = '{"k": 10}';

/** Returns code that reads rows from a path of the API, an object in each line, in several languages. */
function rowSnippets(path: string): Html {
  const url = `http://127.0.0.1:8080${path}`;
  const snippets: Readonly<Record<string, string>> = {
    curl: `curl ${Object.entries(TYPES)
      .map(([name, value]) => `-H '${name}: ${value}'`)
      .join(" ")} -d '${BODY}' '${url}'`,
    Python: `import json, urllib.request

request = urllib.request.Request("${url}", b'${BODY}', ${JSON.stringify(TYPES)})
with urllib.request.urlopen(request) as rows:
    for line in rows:
        print(json.loads(line))`,
    Node: `import { createInterface } from "node:readline";
import { Readable } from "node:stream";

const headers = ${JSON.stringify(TYPES)};
const answer = await fetch("${url}", { method: "POST", headers, body: '${BODY}' });
if (!answer.ok) throw new Error(await answer.text());
for await (const line of createInterface({ input: Readable.fromWeb(answer.body) })) console.log(JSON.parse(line));`,
    Go: `request, _ := http.NewRequest("POST", "${url}", strings.NewReader(\`${BODY}\`))
request.Header.Set("accept", "${TYPES.accept}")
request.Header.Set("content-type", "${TYPES["content-type"]}")
answer, err := http.DefaultClient.Do(request)
if err != nil {
	log.Fatal(err)
}
defer answer.Body.Close()
rows := json.NewDecoder(answer.Body)
rows.UseNumber()
for rows.More() {
	var row map[string]any
	if err := rows.Decode(&row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(row)
}`,
  };
  return html`<details><summary>Rows as JSON, in code</summary>
${Object.entries(snippets).map(([name, code]) => html`<h4>${name}</h4>\n<pre><code>${code}</code></pre>\n`)}</details>`;
}
