import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it, vi } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { createDescribedTables } from "./described-tables.ts";

const ID = ["t"];
const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ID });

/** Descriptions of a catalog that answers when it is told. */
function world() {
  const asked: PromiseWithResolvers<string>[] = [];
  const storageOptions: Record<string, string> = {};
  const operations: Backend["operations"] = {
    async describeTable() {
      const answer = Promise.withResolvers<string>();
      asked.push(answer);
      return create(DescribeTableResponseSchema, { location: await answer.promise, storageOptions });
    },
  };
  const descriptions = createDescribedTables({ operations } as Backend, 60_000);
  const describeTable = async () => (await descriptions.describe(call, ID)).location;
  return { asked, descriptions, describeTable, storageOptions };
}

describe("descriptions of tables that are kept", () => {
  it("are found from the first answer on, however many calls have asked meanwhile", async () => {
    const { asked, describeTable } = world();
    const [first, second] = [describeTable(), describeTable()];
    asked[0]?.resolve("/a");
    assert.equal(await first, "/a");
    assert.equal(await describeTable(), "/a");
    asked[1]?.reject(new LanceError("ServiceUnavailable", "the catalog fails"));
    await assert.rejects(second, /the catalog fails/);
    assert.equal(await describeTable(), "/a");
    assert.equal(asked.length, 2);
  });

  it("are not kept after a failure, nor if the table was changed while they were on their way", async () => {
    const { asked, descriptions, describeTable } = world();
    const failing = describeTable();
    asked[0]?.reject(new LanceError("TableNotFound", "no such table"));
    await assert.rejects(failing, /no such table/);
    const late = describeTable();
    descriptions.forget(ID);
    asked[1]?.resolve("/old");
    assert.equal(await late, "/old");
    const newer = describeTable();
    asked[2]?.resolve("/new");
    assert.equal(await newer, "/new");
    assert.equal(await describeTable(), "/new");
    assert.equal(asked.length, 3);
  });

  it("are kept no longer than until a minute before their credentials expire", async (t) => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    t.onTestFinished(() => void vi.useRealTimers());
    const { asked, describeTable, storageOptions } = world();
    storageOptions["expires_at_millis"] = String(Date.now() + 70_000);
    const first = describeTable();
    asked[0]?.resolve("/a");
    assert.equal(await first, "/a");
    vi.advanceTimersByTime(9_000);
    assert.equal(await describeTable(), "/a");
    vi.advanceTimersByTime(2_000);
    const second = describeTable();
    asked[1]?.resolve("/b");
    assert.equal(await second, "/b");
    assert.equal(asked.length, 2);
  });
});
