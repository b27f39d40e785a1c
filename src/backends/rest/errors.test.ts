import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { UPSTREAM_FORMS } from "../../dialects/upstream.ts";
import { CreateTableRequestSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { ERROR_TABLE, type ErrorName, LanceError, PUBLIC_ERROR_COUNT } from "../../namespace/errors.ts";
import { errorOfAnswer } from "./errors.ts";

interface Case {
  readonly what: string;
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Record<string, string>;
  readonly resource?: string;
  readonly asksExistence?: boolean;
  readonly lancedb?: boolean;
  readonly error: ErrorName;
  readonly message?: string;
}

function read({ status, body, text, headers = {}, ...facts }: Omit<Case, "what" | "error">): LanceError {
  const sent = text ?? (body === undefined ? "" : JSON.stringify(body));
  return errorOfAnswer(
    { status, headers, body: Buffer.from(sent), pieces: undefined },
    {
      forms: UPSTREAM_FORMS[facts.lancedb ? "lancedb" : "specification"].errors,
      request: CreateTableRequestSchema.typeName,
      resource: facts.resource ?? "table",
      asksExistence: facts.asksExistence ?? false,
    },
  );
}

const html = { "content-type": "text/html" };
const plain = { "content-type": "text/plain" };

const cases: readonly Case[] = [
  {
    what: "the code before the status",
    status: 500,
    body: { error: "m", code: 4 },
    error: "TableNotFound",
    message: "m",
  },
  {
    what: "the code before the type",
    status: 404,
    body: { code: 1, type: "/errors/table-not-found" },
    error: "NamespaceNotFound",
  },
  {
    what: "a type that has the code",
    status: 413,
    body: { code: 13, type: "/errors/payload-too-large" },
    error: "PayloadTooLarge",
  },
  {
    what: "the type without a code",
    status: 404,
    body: { type: "/errors/table-tag-not-found" },
    error: "TableTagNotFound",
  },
  {
    what: "the title without a code",
    status: 409,
    body: { title: "Table already exists" },
    error: "TableAlreadyExists",
    message: "Table already exists",
  },
  {
    what: "an unknown code",
    status: 404,
    body: { error: "m", code: 99 },
    error: "TableNotFound",
    message: "m",
  },
  {
    what: "a code that is a text",
    status: 409,
    body: { code: "4", error: "m" },
    error: "ConcurrentModification",
  },
  {
    what: "a type of the specification before the status",
    status: 500,
    body: { type: "/errors/bad-request", detail: "d" },
    error: "InvalidInput",
    message: "d",
  },
  {
    what: "a type of the specification that several errors share",
    status: 404,
    body: { type: "/errors/not-found-error", title: "Not found Error" },
    error: "TableNotFound",
    message: "Not found Error",
  },
  {
    what: "the code before a type of the specification",
    status: 404,
    body: { code: 8, type: "/errors/not-found-error", error: "m" },
    error: "TableTagNotFound",
    message: "m",
  },
  {
    what: "the kind of an error of our own",
    status: 500,
    body: { code: 18, kind: "DataLoss", type: "/errors/server-error" },
    error: "DataLoss",
  },
  {
    what: "an unknown type",
    status: 400,
    body: { type: "/errors/other", detail: "d" },
    error: "InvalidInput",
    message: "d",
  },
  {
    what: "an older shape",
    status: 400,
    body: { error: { message: "m", type: "InvalidInput" } },
    error: "InvalidInput",
    message: "m",
  },
  {
    what: "a text",
    status: 400,
    text: "no such thing",
    headers: plain,
    error: "InvalidInput",
    message: "the upstream catalog answered with HTTP status 400: no such thing",
  },
  {
    what: "a body over a limit",
    status: 413,
    text: "length limit exceeded",
    headers: plain,
    error: "PayloadTooLarge",
  },
  {
    what: "a page of a proxy",
    status: 502,
    text: "<html>Bad Gateway</html>",
    headers: html,
    error: "ServiceUnavailable",
    message: "the upstream catalog answered with HTTP status 502",
  },
  { what: "an unknown route", status: 404, error: "Unsupported" },
  { what: "a page for an unknown route", status: 404, text: "<html>", headers: html, error: "Unsupported" },
  { what: "a wrong method", status: 405, error: "Unsupported" },
  {
    what: "an object that is not there",
    status: 404,
    asksExistence: true,
    resource: "namespace",
    error: "NamespaceNotFound",
  },
  {
    what: "a table that is not there, in words",
    status: 404,
    text: "Table t was not found",
    headers: plain,
    error: "TableNotFound",
  },
  { what: "a transaction", status: 404, body: {}, resource: "transaction", error: "TransactionNotFound" },
  { what: "a 401", status: 401, error: "Unauthenticated" },
  {
    what: "a 401 in disguise",
    status: 501,
    body: { error: "status: 401, body: unauthorized" },
    error: "Unauthenticated",
  },
  {
    what: "a 401 in disguise, with the code for anything",
    status: 500,
    body: { error: "HTTP 401 Unauthorized", code: 18 },
    error: "Unauthenticated",
  },
  { what: "a 4010 that is none", status: 500, body: { error: "row 4010", code: 18 }, error: "Internal" },
  {
    what: "a table whose name has 401 in it",
    status: 404,
    body: { error: "401", code: 4 },
    error: "TableNotFound",
  },
  {
    what: "an operation that the adapter lacks",
    status: 500,
    body: { error: "Not supported: x not implemented", code: 18 },
    error: "Unsupported",
  },
  { what: "a wait", status: 429, headers: { "retry-after": "3" }, error: "Throttling" },
  { what: "a redirect", status: 302, headers: { location: "/login" }, error: "ServiceUnavailable" },
  { what: "a status that nobody knows", status: 599, error: "ServiceUnavailable" },
  { what: "another fault of the client", status: 418, error: "InvalidInput" },
  {
    what: "LanceDB's word for a table that is there",
    status: 400,
    text: "table t already exists",
    lancedb: true,
    error: "TableAlreadyExists",
  },
  { what: "the same from anyone else", status: 400, text: "table t already exists", error: "InvalidInput" },
];

describe("the error of an answer: ", () => {
  for (const { what, error, message, ...answer } of cases) {
    test(what, () => {
      const found = read(answer);
      assert.equal(found.entry.name, error);
      if (message !== undefined) assert.equal(found.message, message);
    });
  }

  test("a text that repeats the words of an upstream 300,000 times, as one that quotes a caller's filter may", () => {
    const error = "Not supported: ".repeat(300_000);
    assert.equal(read({ status: 500, body: { error, code: 18 } }).entry.name, "Internal");
  });

  test("every public code", () => {
    for (const { code, name, httpStatus: status } of ERROR_TABLE.slice(0, PUBLIC_ERROR_COUNT)) {
      assert.equal(read({ status, body: { code, error: "m" } }).entry.name, name);
    }
  });

  test("every row that a gateway of our own writes", () => {
    for (const { code, name: kind, type, title, httpStatus: status } of ERROR_TABLE) {
      assert.equal(read({ status, body: { code, kind, type, title, error: "m" } }).entry.name, kind);
    }
  });

  test("every row that an earlier gateway wrote", () => {
    for (const { code, name, httpStatus: status } of ERROR_TABLE) {
      const words = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();
      assert.equal(read({ status, body: { code, type: `/errors/${words}`, error: "m" } }).entry.name, name);
    }
  });

  test("the id of the upstream's request, its detail and its advice are kept", () => {
    const headers = { "x-request-id": "up-1", "retry-after": "3", "x-internal": "secret" };
    const error = read({ status: 503, body: { code: 17, detail: "long", instance: "/v1/x" }, headers });
    assert.equal(error.instance, "up-1");
    assert.equal(error.detail, "long");
    assert.deepEqual(error.headers, { "retry-after": "3" });
    assert.equal(read({ status: 503, body: { code: 17, instance: "/v1/x" } }).instance, "/v1/x");
  });

  test("maps any answer to an error of the table", () => {
    const bodies = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .record({
          code: fc.anything(),
          type: fc.anything(),
          title: fc.anything(),
          error: fc.anything(),
          detail: fc.anything(),
        })
        .map((body) => JSON.stringify(body, (_, value) => (typeof value === "bigint" ? null : value))),
    );
    const names = new Set(ERROR_TABLE.map(({ name }) => name));
    fc.assert(
      fc.property(fc.integer({ min: 200, max: 999 }), bodies, fc.string(), (status, text, type) => {
        const error = read({ status, text: text ?? "", headers: { "content-type": type } });
        assert.ok(error instanceof LanceError && names.has(error.entry.name) && error.message !== "");
      }),
    );
  });
});
