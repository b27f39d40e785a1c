import assert from "node:assert/strict";
import { type DescMethod, hasOption, type Message } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { not_blank } from "../../src/gen/lance/namespace/v1/options_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import type { SetPropertyMode } from "../../src/gen/lance/namespace/v1/transaction_pb.ts";
import { people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

const BLANKS = ["", " ", "\t\n"];

type Call = (request: object, body?: Uint8Array) => Promise<Message>;

/** Fields in which a blank text would mean as much as none, and values of enums that no release has. */
export function unfitFieldTests(world: World): void {
  const send = (method: DescMethod, request: object) => {
    const { [method.localName]: call } = world.client as unknown as Record<string, Call>;
    return (call as Call)(
      request,
      method.methodKind === "client_streaming" ? personStream(people(1)) : undefined,
    );
  };

  describe("blank texts", () => {
    for (const method of LanceNamespaceService.methods) {
      const fields = method.input.fields.filter((field) => hasOption(field, not_blank));
      if (fields.length === 0) continue;
      test(`${method.name} refuses them in ${fields.map(({ name }) => name).join(", ")}`, async () => {
        const id = await world.table();
        for (const { name, localName } of fields) {
          for (const blank of BLANKS) {
            const error = await refused("InvalidInput", send(method, { id, [localName]: blank }));
            assert.match(error.message, new RegExp(`^${name} must not be blank`));
          }
        }
      });
    }

    test("are refused in the query of a plan", async () => {
      const id = await world.table();
      const { client } = world;
      await refused("InvalidInput", client.explainTableQueryPlan({ id, query: { filter: " " } }));
      const match = { terms: "a", column: "" };
      const fullTextQuery = { structuredQuery: { query: { match } } };
      await refused("InvalidInput", client.explainTableQueryPlan({ id, query: { fullTextQuery } }));
    });

    test("change no row", async () => {
      const id = await world.table();
      const { client } = world;
      const before = rowsOf((await client.queryTable({ id })).bytes);
      const merge = { id, on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedBySourceDelete: true };
      for (const blank of BLANKS) {
        const updates = [{ column: "name", expression: "'x'" }];
        await refused("InvalidInput", client.updateTable({ id, updates, predicate: blank }));
        await refused("InvalidInput", client.updateTable({ id, updates, branch: blank }));
        await refused("InvalidInput", client.deleteFromTable({ id, predicate: blank }));
        await refused("InvalidInput", client.deleteFromTable({ id, predicate: "true", branch: blank }));
        const rows = personStream(people(2));
        const updating = { ...merge, whenMatchedUpdateAllFilt: blank };
        await refused("InvalidInput", client.mergeInsertIntoTable(updating, rows));
        const deleting = { ...merge, whenNotMatchedBySourceDeleteFilt: blank };
        await refused("InvalidInput", client.mergeInsertIntoTable(deleting, rows));
        await refused("InvalidInput", client.insertIntoTable({ id, branch: blank }, rows));
      }
      assert.deepEqual(rowsOf((await client.queryTable({ id })).bytes), before);
    });
  });

  describe("unknown values of enums", () => {
    for (const method of LanceNamespaceService.methods) {
      const fields = method.input.fields.filter(({ fieldKind }) => fieldKind === "enum");
      if (fields.length === 0) continue;
      test(`${method.name} refuses them in ${fields.map(({ name }) => name).join(", ")}`, async () => {
        const id = await world.table();
        for (const { localName } of fields)
          await refused("InvalidInput", send(method, { id, [localName]: 99 }));
        assert.equal(await world.count(id), 5);
      });
    }

    test("are refused in actions and operations", async () => {
      const id = await world.table();
      const { client } = world;
      const mode = 99 as SetPropertyMode;
      const action = { case: "setPropertyAction", value: { key: "a", value: "b", mode } } as const;
      await refused("InvalidInput", client.alterTransaction({ id: [...id, "1"], actions: [{ action }] }));
    });
  });
}
