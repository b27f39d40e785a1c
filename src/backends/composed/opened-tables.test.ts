import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { DescribedTable, DescribedTables } from "./described-tables.ts";
import { createOpenedTables } from "./opened-tables.ts";
import type { RowStorages, WantedStorage } from "./row-storages.ts";

const OWN = { aws_secret_access_key: "gateways", aws_endpoint: "https://own.example.com" };

/** Opens the storage of a table with options of the upstream, and returns those that the engine would get. */
async function optionsFor(storageOptions: Readonly<Record<string, string>>) {
  const wanted: WantedStorage[] = [];
  const storages = {
    async acquire(storage: WantedStorage) {
      wanted.push(storage);
      throw new Error(`cannot open with ${JSON.stringify(storage.options)}`);
    },
  } as unknown as RowStorages;
  const opened = createOpenedTables({} as DescribedTables, storages, {
    log: undefined as never,
    allowedLocations: ["s3://lake"],
    storageOptionsOf: () => OWN,
  });
  const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"] });
  const described = { id: ["t"], location: "s3://lake/t.lance", properties: {}, storageOptions };
  const failure = await opened.open(call, described as unknown as DescribedTable).catch((error) => error);
  return { options: wanted[0]?.options, failure: failure as Error };
}

describe("the storage of an upstream's table", () => {
  it("is opened with the upstream's options alone if they have credentials", async () => {
    const vended = {
      aws_access_key_id: "k",
      aws_secret_access_key: "s",
      aws_endpoint: "https://x.example.com",
    };
    assert.deepEqual((await optionsFor(vended)).options, vended);
  });

  it("is opened with the gateway's options alone if the upstream sends no credentials", async () => {
    assert.deepEqual((await optionsFor({ aws_endpoint: "https://evil.example.com" })).options, OWN);
  });

  it("keeps credentials out of the error if it cannot be opened", async () => {
    const { failure } = await optionsFor({ aws_secret_access_key: "s3cret" });
    assert.ok(isLanceError(failure, "ServiceUnavailable"));
    assert.doesNotMatch(failure.message, /s3cret/);
  });
});
