import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, it, test } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { ERROR_TABLE } from "../../namespace/errors.ts";
import { atOnce } from "../../runtime/pace.ts";
import { createTranscoder } from "../../transcode/transcoder.ts";
import type { SecurityWay } from "./document.ts";
import { documentSteps, type OpenApiDocument } from "./document.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema?: object }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, object>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>;
}

function documentWith(...security: SecurityWay[]): OpenApiDocument {
  return JSON.parse(JSON.stringify(atOnce(documentSteps({ version: "1.2.3", security }))));
}

const document = documentWith();

function operation(path: string, method = "post"): Operation {
  return (document.paths[path]?.[method] ?? assert.fail(`no ${method} ${path}`)) as Operation;
}

function properties(name: string): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const schema = (document.components["schemas"]?.[name] ?? assert.fail(name)) as { properties: never };
  return schema.properties;
}

describe("the OpenAPI document", () => {
  it("is valid, with and without security", async () => {
    for (const each of [document, documentWith("api-key", "oidc", "kubernetes", "mtls")]) {
      const result = await new Validator().validate(each as never);
      assert.deepEqual(result, { valid: true });
    }
  });

  it("has an operation with an id of its own for each binding", () => {
    const { bindings } = createTranscoder([LanceNamespaceService]);
    const all = Object.values(document.paths).flatMap((item) => Object.values(item) as Operation[]);
    assert.equal(all.length, bindings.length);
    assert.equal(new Set(all.map(({ operationId }) => operationId)).size, all.length);
    for (const { name } of LanceNamespaceService.methods)
      assert.ok(
        all.some(({ operationId }) => operationId === name),
        name,
      );
  });

  it("describes names, types and enums as the REST API writes them", () => {
    const query = properties("QueryTableRequest");
    assert.deepEqual([query["k"]?.["type"], query["with_row_id"]?.["type"]], ["integer", "boolean"]);
    assert.match(String(query["k"]?.["description"]), /\w/);
    const { version } = properties("DescribeTableResponse");
    assert.deepEqual([version?.["type"], version?.["format"]], ["integer", "int64"]);
    const { mode } = properties("CreateNamespaceRequest");
    assert.deepEqual(mode?.["enum"], ["Create", "ExistOk", "Overwrite"]);
  });

  it("names the types of Arrow bodies in both directions", () => {
    const created = operation("/v1/table/{id}/create");
    assert.deepEqual(Object.keys(created.requestBody?.content ?? {}), [
      "application/vnd.apache.arrow.stream",
      "application/vnd.apache.arrow.file",
    ]);
    assert.ok(created.parameters.some((parameter) => parameter.name === "mode" && parameter.in === "query"));
    const answer = operation("/v1/table/{id}/query").responses["200"];
    assert.deepEqual(Object.keys(answer?.content ?? {}), [
      ...["application/vnd.apache.arrow.file", "application/vnd.apache.arrow.stream"],
      ...["application/json", "application/x-ndjson"],
    ]);
  });

  it("has an answer for each status of the error table, with an example of each error", () => {
    type Examples = Readonly<Record<string, { readonly value: Readonly<Record<string, unknown>> }>>;
    type Answer = { readonly content: { readonly "application/json": { readonly examples: Examples } } };
    const responses = document.components["responses"] as Readonly<Record<string, Answer>>;
    for (const { httpStatus, name, code, type } of ERROR_TABLE) {
      const { examples } = responses[`Error${httpStatus}`]?.content["application/json"] ?? assert.fail();
      const { value } = examples[name] ?? assert.fail(name);
      assert.deepEqual([value["code"], value["type"], value["status"]], [code, type, httpStatus]);
    }
    const { responses: own } = operation("/v1/table/{id}/describe");
    assert.match(JSON.stringify(own["404"]), /TableVersionNotFound \(code 11\)/);
  });

  it("asks for one of the credentials that the gateway takes, and for none without authentication", () => {
    assert.ok(!("security" in document));
    const guarded = documentWith("api-key", "oidc", "kubernetes", "mtls") as unknown as Record<string, never>;
    assert.deepEqual(guarded["security"], [{ ApiKey: [] }, { Token: [] }, { Certificate: [] }]);
  });
});

test("the document is made in a step for each method, so that others have turns of the event loop meanwhile", () => {
  const methods = LanceNamespaceService.methods.length;
  assert.ok([...documentSteps({ version: "1" })].length > methods / 2);
});
