import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { atOnce } from "../../src/runtime/pace.ts";
import { documentSteps } from "../../src/server/openapi/document.ts";
import { compareDocuments } from "./compare-documents.ts";
import { readDocument, specification } from "./document.ts";
import { OPENAPI_ADDITIONS, OPENAPI_DIFFERENCES } from "./openapi-differences.ts";

const sorted = (texts: Iterable<string>) => [...new Set(texts)].sort();

describe("the gateway's OpenAPI document beside the public one", () => {
  const document = JSON.parse(JSON.stringify(atOnce(documentSteps({ version: "1.0.0" }))));
  const { differences, additions } = compareDocuments(specification, readDocument(document));

  it("has every operation, parameter, property and error, except for the known differences", () => {
    assert.deepEqual(sorted(differences), sorted(Object.keys(OPENAPI_DIFFERENCES)));
  });

  it("adds only what is known", () => {
    assert.deepEqual(sorted(additions), sorted(Object.keys(OPENAPI_ADDITIONS)));
  });
});
