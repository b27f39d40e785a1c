import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import {
  type AlterTransactionRequestSchema,
  SetPropertyMode,
  TransactionStatus,
  UnsetPropertyMode,
} from "../../src/gen/lance/namespace/v1/transaction_pb.ts";
import { people } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

type Actions = NonNullable<MessageInitShape<typeof AlterTransactionRequestSchema>["actions"]>;
type Action = NonNullable<Actions[number]["action"]>;

const status = (value: TransactionStatus): Action => ({ case: "setStatusAction", value: { status: value } });
const set = (key: string, value: string, mode?: SetPropertyMode): Action => ({
  case: "setPropertyAction",
  value: { key, value, ...(mode && { mode }) },
});
const unset = (key: string, mode?: UnsetPropertyMode): Action => ({
  case: "unsetPropertyAction",
  value: { key, ...(mode && { mode }) },
});

/** Notes of clients on transactions. */
export function transactionTests(world: World): void {
  const alter = (id: string[], ...actions: Action[]) =>
    world.client.alterTransaction({ id, actions: actions.map((action) => ({ action })) });

  async function transaction(): Promise<string[]> {
    return [...(await world.table(people(1))), "1"];
  }
  async function own(id: string[]): Promise<Record<string, string>> {
    const { properties } = await world.client.describeTransaction({ id });
    const given = ["uuid", "version", "read_version", "operation", "tag"];
    return Object.fromEntries(Object.entries(properties).filter(([key]) => !given.includes(key)));
  }

  describe("altering transactions", () => {
    test("sets the status and properties, by number or id", async () => {
      const id = await transaction();
      const before = await world.client.describeTransaction({ id });
      assert.equal(before.status, TransactionStatus.SUCCEEDED);
      const altered = await alter(id, status(TransactionStatus.CANCELED), set("a", "1"), set("b", ""));
      assert.equal(altered.status, TransactionStatus.CANCELED);
      assert.equal(altered.properties["a"], "1");
      const byId = [...id.slice(0, -1), before.properties["uuid"] as string];
      await alter(byId, set("a", "2"), unset("b"));
      const after = await world.client.describeTransaction({ id });
      assert.equal(after.status, TransactionStatus.CANCELED);
      assert.deepEqual(await own(id), { a: "2" });
      assert.equal(after.properties["operation"], before.properties["operation"]);
    });

    test("follows the mode of each action", async () => {
      const id = await transaction();
      await alter(id, set("a", "1", SetPropertyMode.FAIL));
      await refused("ConcurrentModification", alter(id, set("a", "2", SetPropertyMode.FAIL)));
      await alter(id, set("a", "2", SetPropertyMode.SKIP), set("b", "1", SetPropertyMode.SKIP));
      assert.deepEqual(await own(id), { a: "1", b: "1" });
      await alter(id, set("a", "2", SetPropertyMode.OVERWRITE), unset("b", UnsetPropertyMode.FAIL));
      assert.deepEqual(await own(id), { a: "2" });
      await alter(id, unset("b"), unset("b", UnsetPropertyMode.SKIP));
      await refused("InvalidInput", alter(id, unset("b", UnsetPropertyMode.FAIL)));
    });

    test("does all actions or none", async () => {
      const id = await transaction();
      await alter(id, set("a", "1"));
      const failing = alter(id, set("b", "1"), unset("a"), set("b", "2", SetPropertyMode.FAIL));
      await refused("ConcurrentModification", failing);
      assert.deepEqual(await own(id), { a: "1" });
    });

    test("refuses the transaction's own properties, and incomplete actions", async () => {
      const id = await transaction();
      for (const key of ["uuid", "version", "read_version", "operation", "tag", ""]) {
        await refused("InvalidInput", alter(id, set(key, "x")));
        await refused("InvalidInput", alter(id, unset(key)));
      }
      await refused("InvalidInput", alter(id));
      await refused("InvalidInput", world.client.alterTransaction({ id, actions: [{}] }));
      await refused("InvalidInput", alter(id, { case: "setStatusAction", value: {} }));
      await refused("TransactionNotFound", alter([...id.slice(0, -1), "99"], set("a", "1")));
      assert.deepEqual(await own(id), {});
    });

    test("loses none of several concurrent notes", async () => {
      const id = await transaction();
      await Promise.all(Array.from({ length: 10 }, (_, i) => alter(id, set(`k${i}`, String(i)))));
      assert.equal(Object.keys(await own(id)).length, 10);
    });
  });
}
