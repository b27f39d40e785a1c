import assert from "node:assert/strict";
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { compose } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { boundNames, MAX_NAME_LENGTH } from "./name-lengths.ts";

const { method } = LanceNamespaceService;
const LONG = "x".repeat(MAX_NAME_LENGTH + 1);

/** Sends a request through the check to a backend that answers everything. */
async function send(operation: keyof typeof method, init: Record<string, unknown>): Promise<Message> {
  const called = method[operation] as DescMethodUnary;
  const service = serviceOf(compose([boundNames], async () => create(called.output) as never));
  return await service.unary(called, create(called.input, init), beginCall(called));
}

describe("boundNames", () => {
  const refused = {
    "a tag": ["describeTable", { tag: LONG }, "tag"],
    "a name of an identifier": ["describeTable", { id: ["ns", LONG] }, "id"],
    "a column in a list of messages": [
      "explainTableQueryPlan",
      { query: { orderBy: [{ columnName: "a" }, { columnName: LONG }] } },
      "column_name",
    ],
    "a column in a query of words that contains others": [
      "explainTableQueryPlan",
      {
        query: {
          fullTextQuery: {
            structuredQuery: {
              query: {
                boolean: {
                  should: [{ match: { terms: "a", column: "b" } }, { match: { terms: "a", column: LONG } }],
                },
              },
            },
          },
        },
      },
      "column",
    ],
  } as const;
  for (const [what, [operation, init, field]] of Object.entries(refused)) {
    it(`refuses ${what} that is longer than any name`, async () => {
      await assert.rejects(
        send(operation, init),
        (error) =>
          isLanceError(error, "InvalidInput") &&
          error.message === `${field} has 65537 characters; the maximum is 65536`,
      );
    });
  }

  it("passes names up to the bound, and texts with bounds of their own", async () => {
    await send("describeTable", { id: ["ns", LONG.slice(1)], tag: LONG.slice(1), context: { a: LONG } });
    await send("countTableRows", { predicate: LONG });
    await send("updateTableSchemaMetadata", { metadata: { [LONG]: LONG } });
    await send("updateFieldMetadata", { updates: [{ path: "a", metadata: { a: { value: LONG } } }] });
    await send("alterTableAddColumns", { newColumns: [{ name: "a", expression: LONG }] });
  });
});
