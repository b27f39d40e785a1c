import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { callOf } from "../../../test/fixtures/upstreams/rest.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  type DeclareTableRequest,
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { resolveRequest, shareContext } from "../../pipeline/call/resolve.ts";
import { keyOfCaller } from "./create-identity.ts";
import { createHeaderPolicy, type HeaderPolicyOptions } from "./headers.ts";

const { describeTable, batchCommitTables } = LanceNamespaceService.method;

/** Returns the headers that are sent for a call, by name; the request's context has been merged with the headers. */
function sent(
  headers: Record<string, string>,
  options: HeaderPolicyOptions = {},
  context: Record<string, string> = {},
): Record<string, string> {
  const request = create(DescribeTableRequestSchema, { context });
  const call = callOf(describeTable, { headers: { ...headers } });
  resolveRequest(request, call);
  const pairs = createHeaderPolicy(options).sent(call, request);
  const named: Record<string, string> = {};
  for (let at = 0; at < pairs.length; at += 2) named[pairs[at] as string] = pairs[at + 1] as string;
  return named;
}

const OWN = {
  host: "h",
  connection: "x-lance-a",
  "transfer-encoding": "chunked",
  te: "trailers",
  upgrade: "h2c",
  "proxy-authorization": "p",
  "content-length": "3",
  cookie: "c",
  "x-request-id": "theirs",
};
const CREDENTIALS = { authorization: "Bearer t", "x-api-key": "k" };

describe("headers to the upstream", () => {
  test("by default what ties a trace together, and Lance's own", () => {
    const passed = { traceparent: "00-1-2-01", baggage: "b", "x-lance-a": "1", "x-lancedb-database": "d" };
    const other = { "user-agent": "u", "accept-language": "de", "x-mine": "m" };
    assert.deepEqual(sent({ ...passed, ...other }), { "x-request-id": "request-1", ...passed });
  });

  test("forwards how new an answer has to be, on which answers to others do not depend", () => {
    const demands = {
      "x-lancedb-min-version": "3",
      "x-lancedb-min-read-version": "4",
      "x-lancedb-min-timestamp": "2026-01-02T03:04:05Z",
    };
    assert.deepEqual(sent(demands), { "x-request-id": "request-1", ...demands });
    const call = callOf(describeTable, { headers: { ...demands, "x-lance-a": "1" } });
    assert.deepEqual(createHeaderPolicy({}).varying(call), ["x-lance-a", "1"]);
  });

  test("never forwards headers of the connection or of the caller's identity, whatever the list says", () => {
    const context = Object.fromEntries(
      Object.entries({ ...OWN, ...CREDENTIALS }).map(([name, value]) => [`header.${name}`, value]),
    );
    for (const given of [{}, context]) {
      const found = sent({ ...OWN, ...CREDENTIALS }, { passHeaders: ["*"] }, given);
      assert.deepEqual(found, { "x-request-id": "request-1" });
    }
  });

  test("entries of the context pass by the list for headers, and the request loses them and its identity", () => {
    const request = create(DescribeTableRequestSchema, {
      context: { "header.X-Mine": "m", "header.X-Lance-A": "1", note: "n" },
      identity: { apiKey: "k" },
    });
    const call = callOf(describeTable);
    resolveRequest(request, call);
    const pairs = createHeaderPolicy({}).sent(call, request);
    assert.deepEqual(pairs, ["x-request-id", "request-1", "x-lance-a", "1"]);
    assert.deepEqual(request.context, { note: "n" });
    assert.equal(request.identity, undefined);
  });

  test("an entry of the context does not take the place of a header", () => {
    const found = sent({ "x-user": "alice" }, { passHeaders: ["x-user"] }, { "header.X-User": "mallory" });
    assert.deepEqual(found, { "x-request-id": "request-1", "x-user": "alice" });
  });

  test("drops what the connection header names, as a header and as an entry", () => {
    const headers = { connection: "X-Lance-A, keep-alive", "x-lance-a": "1", "x-lance-b": "2" };
    assert.deepEqual(sent(headers), { "x-request-id": "request-1", "x-lance-b": "2" });
    const { "x-lance-a": _, ...others } = headers;
    assert.deepEqual(sent(others, {}, { "header.x-lance-a": "1" }), {
      "x-request-id": "request-1",
      "x-lance-b": "2",
    });
  });

  test("requests inside of a request lose their identity and their header entries, too", () => {
    const request = create(batchCommitTables.input, {
      operations: [
        {
          operation: {
            case: "declareTable",
            value: {
              id: ["t"],
              identity: { apiKey: "k", authToken: "t" },
              context: { "header.authorization": "Bearer t", note: "n" },
            },
          },
        },
      ],
    });
    createHeaderPolicy({}).sent(callOf(batchCommitTables), request);
    const [{ operation } = {}] = request.operations;
    const { context, identity } = (operation?.value as DeclareTableRequest | undefined) ?? {};
    assert.deepEqual(context, { note: "n" });
    assert.equal(identity, undefined);
  });

  test("a value that no header can have is refused", () => {
    for (const value of ["a\r\nx: y", "\u{1f600}", "\0"]) {
      assert.throws(
        () => sent({}, { passHeaders: ["x-mine"] }, { "header.x-mine": value }),
        (error) => isLanceError(error, "InvalidInput"),
      );
    }
  });

  test("fixed headers come before the client's and before credentials", () => {
    const policy = createHeaderPolicy({ headers: { "X-Lance-A": "fixed", Authorization: "Basic x" } });
    const call = callOf(describeTable, { headers: { "x-lance-a": "theirs" } });
    const pairs = policy.sent(call, create(DescribeTableRequestSchema));
    policy.addCredentials(pairs, CREDENTIALS);
    assert.deepEqual(pairs, [
      "x-lance-a",
      "fixed",
      "authorization",
      "Basic x",
      "x-request-id",
      "request-1",
      "x-api-key",
      "k",
    ]);
  });

  test("a caller of the gateway chooses no database of the upstream, unless the operator lists the header", () => {
    const headers = { "x-lancedb-database": "d", "x-lancedb-database-prefix": "p", "x-lancedb-a": "1" };
    const names = (options: HeaderPolicyOptions, principal?: Principal) => {
      const call = callOf(describeTable, { headers: { ...headers } });
      call.principal = principal;
      const pairs = createHeaderPolicy(options).sent(call, create(DescribeTableRequestSchema));
      return pairs.filter((name) => name.startsWith("x-lancedb-"));
    };
    assert.deepEqual(names({}), Object.keys(headers));
    assert.deepEqual(names({}, ann), ["x-lancedb-a"]);
    assert.deepEqual(names({ passHeaders: ["*"] }, ann), ["x-lancedb-a"]);
    assert.deepEqual(names({ passHeaders: ["X-LanceDB-Database"] }, ann), ["x-lancedb-database"]);
    // The operator has chosen the database for all callers.
    assert.deepEqual(names({ headers: { "x-lancedb-database": "own" } }), [
      "x-lancedb-database",
      "x-lancedb-a",
    ]);
  });

  test("a caller of the gateway chooses no location or catalog by a header, unless the operator lists the header", () => {
    const headers = {
      "x-lance-table-location": "s3://other/t",
      "x-lance-root-catalog": "c",
      "x-lance-a": "1",
    };
    const names = (options: HeaderPolicyOptions, principal?: Principal) => {
      const call = callOf(describeTable, { headers: { ...headers } });
      call.principal = principal;
      const pairs = createHeaderPolicy(options).sent(call, create(DescribeTableRequestSchema));
      return pairs.filter((name) => name.startsWith("x-lance-"));
    };
    assert.deepEqual(names({}), Object.keys(headers));
    assert.deepEqual(names({}, ann), ["x-lance-a"]);
    assert.deepEqual(names({ passHeaders: ["x-lance-*"] }, ann), ["x-lance-a"]);
    assert.deepEqual(names({ passHeaders: ["X-Lance-Table-Location"] }, ann), ["x-lance-table-location"]);
  });

  test("the idempotency key of a caller is none of another caller's", () => {
    const keyFor = (principal?: Principal) => {
      const call = callOf(describeTable, { headers: { "idempotency-key": "k" } });
      call.principal = principal;
      const pairs = createHeaderPolicy({ keyOfCaller }).sent(call, create(DescribeTableRequestSchema));
      return pairs[pairs.indexOf("idempotency-key") + 1];
    };
    assert.equal(keyFor(), "k");
    const keys = [keyFor(ann), keyFor({ ...ann, name: "bob" }), keyFor({ ...ann, by: "oidc" }), "k"];
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(keyFor(ann), keyFor({ ...ann, credentialId: "2" }));
    assert.match(keyFor(ann) ?? "", /^[0-9a-f]{64}$/);
  });

  test("a credential that no header can have is refused without telling it", () => {
    for (const value of ["marked\r\nx: y", "marked\0"]) {
      assert.throws(
        () => createHeaderPolicy({}).addCredentials([], { authorization: `Bearer ${value}` }),
        (error) => isLanceError(error, "InvalidInput") && !error.message.includes("marked"),
      );
    }
  });

  test("a fixed header that is none is refused at once", () => {
    for (const [name, value] of [
      ["a b", "x"],
      ["a", "x\ny"],
    ] as const) {
      assert.throws(() => createHeaderPolicy({ headers: { [name]: value } }));
    }
  });
});

describe("headers from the upstream", () => {
  const answered = { etag: '"1"', "x-lance-b": "2", "set-cookie": ["s"], server: "x", "x-request-id": "u" };

  test("only those of the list reach the client", () => {
    const call = callOf(describeTable);
    createHeaderPolicy({}).returned(answered, call);
    assert.deepEqual(call.responseHeaders, { etag: '"1"', "x-lance-b": "2" });
    const all = callOf(describeTable);
    createHeaderPolicy({ returnHeaders: ["*"] }).returned(answered, all);
    assert.deepEqual(Object.keys(all.responseHeaders), ["etag", "x-lance-b", "server"]);
  });

  test("those of its message and connection that the list permits are entries of the context alone, cookies by name", () => {
    const entriesOf = (returnHeaders?: readonly string[]) => {
      const call = callOf(describeTable);
      createHeaderPolicy({ returnHeaders }).returned({ ...answered, "content-length": "2" }, call);
      const response = create(DescribeTableResponseSchema);
      shareContext(response, call);
      assert.ok(!("content-length" in call.responseHeaders || "set-cookie" in call.responseHeaders));
      return Object.keys(response.context);
    };
    const plain = ["header.etag", "header.x-lance-b"];
    assert.deepEqual(entriesOf(), plain);
    const all = [...plain, "header.server", "header.x-request-id", "header.content-length"];
    assert.deepEqual(entriesOf(["*"]), all);
    assert.deepEqual(entriesOf(["*", "Set-Cookie"]).toSorted(), [...all, "header.set-cookie"].toSorted());
  });

  test("permissions that an upstream gives the gateway are not told to its callers, who may have fewer", () => {
    const name = "x-lance-gateway-permissions";
    const response = () => create(DescribeTableResponseSchema, { context: { [`header.${name}`]: "manage" } });
    for (const [principal, told] of [
      [undefined, true],
      [ann, false],
    ] as const) {
      const [call, answer] = [callOf(describeTable), response()];
      call.principal = principal;
      createHeaderPolicy({}).returned({ [name]: "manage" }, call);
      createHeaderPolicy({}).filterContext(answer, call);
      assert.equal(name in call.responseHeaders, told);
      assert.equal(`header.${name}` in answer.context, told);
    }
  });

  test("the context of an answer brings no others", () => {
    const context = { "header.Set-Cookie": "s", "header.x-lance-b": "2", "header.server": "x", note: "n" };
    const response = create(DescribeTableResponseSchema, { context });
    createHeaderPolicy({}).filterContext(response, callOf(describeTable));
    assert.deepEqual(response.context, { "header.x-lance-b": "2", note: "n" });
  });

  test("an entry of an answer's context that no header can have, or beyond 8 KiB of them, is left out", () => {
    const long = "x".repeat(5000);
    const context = {
      "header.x-lance-a": "1\r\nset-cookie: s",
      "header.x-lance-b": "\0",
      "header.x-lance-c": "\u4e2d",
      "header.x-lance-d": "\u00e9",
      "header.x-lance-e": long,
      "header.x-lance-f": long,
      "header.x-lance-g": "2",
      note: "n\r\n",
    };
    const response = create(DescribeTableResponseSchema, { context });
    createHeaderPolicy({}).filterContext(response, callOf(describeTable));
    assert.deepEqual(response.context, {
      "header.x-lance-d": "\u00e9",
      "header.x-lance-e": long,
      "header.x-lance-g": "2",
      note: "n\r\n",
    });
  });
});
