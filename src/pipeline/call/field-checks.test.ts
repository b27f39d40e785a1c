import assert from "node:assert/strict";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  hasOption,
  type Message,
} from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { InsertIntoTableRequestSchema, InsertMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { not_blank } from "../../gen/lance/namespace/v1/options_pb.ts";
import {
  AnalyzeTableQueryPlanRequestSchema,
  QueryTableRequestSchema,
} from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  AlterTransactionRequestSchema,
  type SetPropertyMode,
} from "../../gen/lance/namespace/v1/transaction_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { serviceOf } from "../create-service.ts";
import { boundNames, checkFields, MAX_NAME_LENGTH } from "./field-checks.ts";
import { compose } from "./interceptor.ts";

/** Names of fields in which a blank text would mean as much as none. */
const NEVER_BLANK = /^(?:predicate|filter|where|\w+_filt|branch|from_branch|source_tag|vector_column)$/;

/** Returns the text fields of a message, and of those in it. */
function textsIn(type: DescMessage, seen = new Set<DescMessage>()): DescField[] {
  if (seen.has(type)) return [];
  seen.add(type);
  return type.fields.flatMap((field) => (field.message ? textsIn(field.message, seen) : [field]));
}

describe("checkFields", () => {
  const requests = [LanceNamespaceService, LanceDbService].flatMap(({ methods }) =>
    methods.map(({ input }) => input),
  );
  for (const type of new Set(requests)) {
    const fields = textsIn(type).filter(({ name }) => NEVER_BLANK.test(name));
    if (fields.length === 0) continue;
    it(`looks at each condition and branch of ${type.name}`, () => {
      assert.deepEqual(fields.filter((field) => !hasOption(field, not_blank)).map(String), []);
    });
  }

  it("passes texts and missing ones, and refuses blank ones in messages of any depth", () => {
    const query = (init: object) =>
      checkFields(QueryTableRequestSchema, create(QueryTableRequestSchema, init));
    const match = (column?: string) => ({ match: { terms: "", column } });
    const words = (column?: string) => ({
      fullTextQuery: { structuredQuery: { query: { boolean: { should: [match("a"), match(column)] } } } },
    });
    query({});
    query({ filter: "a", branch: "b", ...words("c") });
    query(words());
    for (const init of [{ filter: "" }, { branch: " " }, { vectorColumn: "\n" }, words("")]) {
      assert.throws(
        () => query(init),
        (error) => isLanceError(error, "InvalidInput"),
        JSON.stringify(init),
      );
    }
    const analyzed = create(AnalyzeTableQueryPlanRequestSchema, { filter: " " });
    assert.throws(
      () => checkFields(AnalyzeTableQueryPlanRequestSchema, analyzed),
      /filter must not be blank; omit it instead$/,
    );
  });

  it("refuses values that an enum does not have, also within messages", () => {
    const insert = (mode: InsertMode) =>
      checkFields(InsertIntoTableRequestSchema, create(InsertIntoTableRequestSchema, { mode }));
    for (const mode of [InsertMode.UNSPECIFIED, InsertMode.APPEND, InsertMode.OVERWRITE]) insert(mode);
    for (const mode of [99, -1] as InsertMode[])
      assert.throws(() => insert(mode), new RegExp(`mode has the unknown value ${mode}$`));
    const value = { key: "a", value: "b", mode: 99 as SetPropertyMode };
    const altered = create(AlterTransactionRequestSchema, {
      actions: [{ action: { case: "setPropertyAction", value } }],
    });
    assert.throws(() => checkFields(AlterTransactionRequestSchema, altered), /mode has the unknown value 99/);
  });
});

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
