import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { describe, it } from "vitest";
import { beginCall, createCaller } from "../../../test/support/caller.ts";
import { CallError } from "../../../test/support/client.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { InsertIntoTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { type ErrorName, errorEntry, LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { OperationFacts } from "../../namespace/operations/operations.ts";
import {
  compose,
  type Interceptor,
  interceptOperations,
  isStream,
  onlyFor,
  type Step,
} from "./interceptor.ts";

const bytes = (...values: number[]) => new Uint8Array(values);

const failsWith = (name: ErrorName) => (error: unknown) =>
  error instanceof CallError && error.failure.code === errorEntry(name).code;

/** Returns a client of a pipeline with the given interceptors, and a record of what the backend received. */
function intercepted(...interceptors: Interceptor[]) {
  const got: unknown[] = [];
  const backend: Backend = {
    name: "memory",
    operations: {
      async describeTable({ id }) {
        got.push(id);
        if (id[0] === "fails") throw new LanceError("TableNotFound", "no such table");
        return create(DescribeTableResponseSchema, { table: id[0] ?? "" });
      },
      async insertIntoTable(_, data) {
        for await (const piece of data) got.push([...piece]);
        return create(InsertIntoTableResponseSchema, { transactionId: "1" });
      },
      async *queryTable() {
        for (const byte of [1, 2]) {
          const data = create(HttpBodySchema, { contentType: "x", data: bytes(byte) });
          yield create(QueryTableResponseSchema, { data });
        }
      },
    },
    ready: async () => true,
    close: async () => {},
  };
  return { got, client: createCaller({ backend, limits: { maxUploadBytes: 10_000 }, interceptors }) };
}

describe("interceptors", () => {
  it("see requests in the order in which they are given, and responses in the opposite order", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      async (call, request, next) => {
        seen.push(`${name} before ${request.operation} of ${call.id}`);
        const response = await next(call, request);
        seen.push(`${name} after`);
        return response;
      };
    await intercepted(named("a"), named("b")).client.describeTable({ id: ["t"] });
    assert.deepEqual(seen, [
      "a before describeTable of t",
      "b before describeTable of t",
      "b after",
      "a after",
    ]);
  });

  it("refuse a call before the backend sees it, whether or not they are async", async () => {
    const refusal = new LanceError("PermissionDenied", "closed");
    const throwing: Interceptor = () => {
      throw refusal;
    };
    const rejecting: Interceptor = async () => {
      throw refusal;
    };
    let caught = 0;
    const outer: Interceptor = (call, request, next) =>
      next(call, request).catch((error) => {
        caught += 1;
        throw error;
      });
    for (const refuses of [throwing, rejecting]) {
      const { client, got } = intercepted(outer, refuses);
      for (const call of [
        client.describeTable({ id: ["t"] }),
        client.insertIntoTable({ id: ["t"] }, bytes(1)),
        client.queryTable({ id: ["t"] }),
      ]) {
        await assert.rejects(call, failsWith("PermissionDenied"));
      }
      assert.deepEqual(got, []);
    }
    assert.equal(caught, 6);
  });

  it("answer without the backend, also an operation that it lacks", async () => {
    const { client, got } = intercepted(
      interceptOperations({
        async describeTable(_, { message }) {
          return create(DescribeTableResponseSchema, { table: `kept ${message.id[0]}` });
        },
        async tableExists(call) {
          return create(call.method.output) as never;
        },
      }),
    );
    assert.equal((await client.describeTable({ id: ["t"] })).table, "kept t");
    await client.tableExists({ id: ["t"] });
    assert.deepEqual(got, []);
  });

  it("pass operations on that they are not for", async () => {
    const { client } = intercepted(
      interceptOperations({
        tableExists() {
          throw new LanceError("Internal", "never");
        },
      }),
    );
    assert.equal((await client.describeTable({ id: ["t"] })).table, "t");
  });

  it("take part only in the chains of the operations to which they apply", async () => {
    const passed: string[] = [];
    const asked: string[] = [];
    const step =
      (name: string): Interceptor =>
      (call, request, next) => {
        passed.push(`${name} ${request.operation}`);
        return next(call, request);
      };
    const applies = (action: string) => (facts: OperationFacts) => {
      asked.push(facts.method.localName);
      return facts.action === action;
    };
    const list: Step = (call, request, _, others) =>
      others("listTables")(call, { ...request, operation: "listTables" } as never) as never;
    const chain = compose(
      [
        step("all"),
        onlyFor(({ method }) => method.localName === "describeTable", list),
        onlyFor(applies("list"), step("lists")),
        onlyFor(applies("describe"), step("descriptions")),
      ],
      async ({ method }) => create(method.output) as never,
    );
    const { describeTable, tableExists } = LanceNamespaceService.method;
    const times = asked.length;
    for (const method of [tableExists, describeTable]) {
      const message = create(method.input);
      await chain(beginCall(method), { kind: "unary", operation: method.localName, message } as never);
    }
    // A request of another operation goes on in the chain of that operation.
    const listed = ["all describeTable", "lists listTables"];
    assert.deepEqual(passed, ["all tableExists", "descriptions tableExists", ...listed]);
    assert.equal(asked.length, times);
  });

  it("call the backend again after a failure", async () => {
    const { client, got } = intercepted(
      interceptOperations({
        async describeTable(call, request, next) {
          try {
            return await next(call, request);
          } catch {
            return next(call, { ...request, message: { ...request.message, id: ["other"] } });
          }
        },
      }),
    );
    assert.equal((await client.describeTable({ id: ["fails"] })).table, "other");
    assert.deepEqual(got, [["fails"], ["other"]]);
  });

  it("change the body of an upload on its way to the backend", async () => {
    async function* doubled(data: AsyncIterable<Uint8Array>) {
      for await (const piece of data) yield piece.map((byte) => byte * 2);
    }
    const { client, got } = intercepted((call, request, next) =>
      next(call, request.kind === "upload" ? { ...request, data: doubled(request.data) } : request),
    );
    const body = tableToIPC(tableFromArrays({ a: [1] }), "stream");
    await client.insertIntoTable({ id: ["t"] }, body);
    assert.deepEqual(
      got.flat(),
      [...body].map((byte) => (byte * 2) % 256),
    );
  });

  it("change the messages of a download and see its end", async () => {
    const ends: string[] = [];
    const { client } = intercepted(async (call, request, next) => {
      const response = await next(call, request);
      if (!isStream(response)) return response;
      async function* passed(messages: AsyncIterable<never>) {
        try {
          yield* messages;
          ends.push("read");
        } finally {
          ends.push("over");
        }
      }
      return passed(response as AsyncIterable<never>);
    });
    assert.deepEqual([...(await client.queryTable({ id: ["t"] })).bytes], [1, 2]);
    assert.deepEqual(ends, ["read", "over"]);
  });

  it("fail a call with an opaque error where they have a defect", async () => {
    const { client } = intercepted(() => {
      throw new TypeError("a secret of the interceptor");
    });
    await assert.rejects(client.describeTable({ id: ["t"] }), (error: Error) => {
      assert.doesNotMatch(error.message, /secret/);
      return failsWith("Internal")(error);
    });
  });
});
