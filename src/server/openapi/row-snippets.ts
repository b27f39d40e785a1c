import { ROW_TYPES } from "../../arrow/ipc/ipc-forms.ts";
import { type Html, html } from "./html.ts";

const TYPES = { accept: ROW_TYPES.lines, "content-type": "application/json" };
const BODY = '{"k": 10}';

/** Returns code that reads rows from a path of the API, an object in each line, in several languages. */
export function rowSnippets(path: string): Html {
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
