import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { BlobServiceClient } from "@azure/storage-blob";
import { afterEach, describe, it, vi } from "vitest";
import { inEverySpelling } from "../../../namespace/credential-options.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { createSasSource } from "./azure-sas.ts";

const DURATION_MS = 3_600_000;
const SECRET = Buffer.from("not a real key");
const ACCOUNT = { azure_storage_account_name: "lake" };

/** Answers for the account instead of the service; counts the keys that it has issued. */
function answer(isHierarchicalNamespaceEnabled: boolean | Error) {
  const issued: Date[] = [];
  vi.spyOn(BlobServiceClient.prototype, "getAccountInfo").mockImplementation(async () => {
    if (isHierarchicalNamespaceEnabled instanceof Error) throw isHierarchicalNamespaceEnabled;
    return { isHierarchicalNamespaceEnabled } as never;
  });
  vi.spyOn(BlobServiceClient.prototype, "getUserDelegationKey").mockImplementation(
    async (start, ...[end]: unknown[]) => {
      issued.push(end as Date);
      return {
        ...{
          signedObjectId: "object",
          signedTenantId: "tenant",
          signedService: "b",
          signedVersion: "2024-11-04",
        },
        ...{ signedStartsOn: start, signedExpiresOn: end, value: SECRET.toString("base64") },
      } as never;
    },
  );
  return issued;
}

const identity = { getToken: async () => ({ token: "t", expiresOnTimestamp: Date.now() + DURATION_MS }) };
const open = () =>
  createSasSource({ container: "tables", storageOptions: ACCOUNT, durationMs: DURATION_MS, identity });

/** Returns the fields of a signature. */
function fieldsOf({ value }: { readonly value: Readonly<Record<string, string>> }): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(value["azure_storage_sas_token"]));
}

describe("signatures of Azure", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("reach the directory of the table, to its depth, over TLS", async () => {
    answer(true);
    const { issue } = await open();
    const { sr, sdd, spr, sp } = fieldsOf(await issue("catalog/data/t.lance", "read"));
    assert.deepEqual({ sr, sdd, spr, sp }, { sr: "d", sdd: "3", spr: "https", sp: "rl" });
  });

  it("sign the name as it is, whatever it contains", async () => {
    answer(true);
    const { issue } = await open();
    for (const key of ["a b/t+é中😀.lance", "a/t'%2e&sig=x?.lance", "*/$?"]) {
      const fields = fieldsOf(await issue(key, "manage"));
      const { sp = "", se = "", skoid, sktid, skt, ske, sks, skv, spr, sv } = fields;
      const text = [
        ...[sp, "", se, `/blob/lake/tables/${key}`, skoid, sktid, skt, ske, sks, skv],
        ...["", "", "", "", spr, sv, "d", "", "", "", "", "", "", ""],
      ].join("\n");
      assert.equal(fields["sig"], createHmac("sha256", SECRET).update(text).digest("base64"), key);
    }
  });

  it("let nobody write who may not manage", async () => {
    answer(true);
    const { issue, leastToAdd } = await open();
    const letters = async (permission: "read" | "write" | "manage") =>
      fieldsOf(await issue("t", permission))["sp"];
    assert.deepEqual(
      [await letters("read"), await letters("write"), await letters("manage")],
      ["rl", "rl", "racwdl"],
    );
    assert.equal(leastToAdd?.("t"), "manage");
  });

  it("expire when they say", async () => {
    answer(true);
    const issued = await (await open()).issue("t", "read");
    assert.equal(Date.parse(fieldsOf(issued)["se"] ?? ""), issued.expiresAt);
    assert.ok(issued.expiresAt <= Date.now() + DURATION_MS);
    assert.ok(issued.expiresAt > Date.now() + DURATION_MS - 60_000);
  });

  it("are made by one key while it outlives them, and by one also for callers at the same time", async () => {
    const keys = answer(true);
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      const { issue } = await open();
      await Promise.all(["a", "b", "c"].map((key) => issue(key, "read")));
      vi.setSystemTime(Date.now() + DURATION_MS);
      const { expiresAt } = await issue("d", "read");
      assert.equal(keys.length, 1);
      assert.ok(expiresAt <= (keys[0] as Date).getTime());
      vi.setSystemTime(Date.now() + 1);
      await issue("e", "read");
      assert.equal(keys.length, 2);
    } finally {
      vi.useRealTimers();
    }
  });

  it("do not exist for an account without directories, nor before that is known", async () => {
    answer(false);
    await assert.rejects(
      open(),
      /^Error: --vend azure-sas needs a storage account with a hierarchical namespace, unlike lake$/,
    );
    vi.restoreAllMocks();
    answer(Object.assign(new Error("gone"), { code: "ECONNREFUSED" }));
    const { issue } = await open();
    await assert.rejects(issue("t", "read"), (error) => isLanceError(error, "ServiceUnavailable"));
    vi.restoreAllMocks();
    answer(false);
    await assert.rejects(issue("t", "read"), (error) => isLanceError(error, "Unsupported"));
    vi.restoreAllMocks();
    answer(true);
    const { issue: later } = await open();
    await assert.rejects(later("", "read"), (error) => isLanceError(error, "InvalidInput"));
  });

  it("have every name that clients know", async () => {
    answer(true);
    const { value } = await (await open()).issue("t", "read");
    const token = value["azure_storage_sas_token"];
    assert.deepEqual(inEverySpelling(value), {
      ...{ azure_storage_sas_token: token, azure_storage_sas_key: token },
      ...{ sas_key: token, sas_token: token },
    });
  });
});
