import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { atOnce } from "../../runtime/pace.ts";
import { documentSteps } from "./document.ts";
import { html, prose, renderPage } from "./page.ts";

describe("the page of the document", () => {
  const document = atOnce(documentSteps({ version: "1.2.3", security: ["api-key", "oidc"] }));
  const page = renderPage(document);

  it("has a form for every operation, and a field for every parameter", () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item)) as {
      operationId: string;
      parameters: unknown[];
    }[];
    for (const { operationId } of operations)
      assert.match(page, new RegExp(`<details class="operation" id="${operationId}">`));
    assert.equal(page.match(/<form class="try"/g)?.length, operations.length);
    const parameters = operations.flatMap((operation) => operation.parameters);
    assert.equal(page.match(/data-in="(path|query)"/g)?.length, parameters.length);
  });

  it("reads rows as lines of JSON, and has code that does", () => {
    assert.equal(page.match(/data-accept="application\/x-ndjson"/g)?.length, 1);
    for (const name of ["curl", "Python", "Node", "Go"]) assert.match(page, new RegExp(`<h4>${name}</h4>`));
  });

  it("leads from types to their schemas, and nowhere else", () => {
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [, address = ""] of page.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (address.startsWith("#")) assert.ok(ids.has(address.slice(1)), address);
      else assert.match(address, /^\/(?:docs\/docs\.(?:js|css)|openapi\.json)$/);
    }
  });

  it("asks for the credentials that the gateway takes", () => {
    assert.match(page, /name="x-api-key"/);
    assert.match(page, /name="authorization" data-prefix="Bearer "/);
    assert.doesNotMatch(renderPage(atOnce(documentSteps({ version: "1" }))), /id="credentials"/);
  });

  it("has no text that a comment could turn into markup", () => {
    assert.equal(html`<p>${"<script>\"'&"}</p>`.text, "<p>&lt;script&gt;&quot;&#39;&amp;</p>");
    assert.equal(prose("a `<b>` c")[0]?.text, "<p>a <code>&lt;b&gt;</code> c</p>");
  });
});
