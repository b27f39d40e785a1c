import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { BlobServiceClient } from "@azure/storage-blob";
import { afterAll, beforeAll, describe, it, vi } from "vitest";
import { createSasSource } from "../../../src/backends/dir/vending/azure-sas.ts";
import { isLanceError } from "../../../src/namespace/errors.ts";
import { makeAuthority } from "../../support/certificates.ts";
import { temporaryDirectory } from "../../support/directory.ts";
import { BUCKET, type StoreServer, startAzure } from "../support/store-servers.ts";

const HOUR_MS = 3_600_000;

/** A token as Microsoft Entra issues it, whose signature the emulator does not check. */
function token(): string {
  const now = Math.floor(Date.now() / 1_000);
  const claims = {
    ...{
      aud: "https://storage.azure.com",
      iss: "https://sts.windows.net/tenant/",
      oid: "object",
      tid: "tenant",
    },
    ...{ iat: now - 60, nbf: now - 60, exp: now + 3_600 },
  };
  const [head, body] = [{ alg: "RS256", typ: "JWT" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  return `${head}.${body}.${Buffer.from("signature").toString("base64url")}`;
}

const identity = { getToken: async () => ({ token: token(), expiresOnTimestamp: Date.now() + HOUR_MS }) };

describe("signatures of a user delegation key, at the emulator of Azure", () => {
  const trusted = getCACertificates("default");
  let server: StoreServer;
  let removeFolder: () => Promise<void>;
  const source = () =>
    createSasSource({ container: BUCKET, storageOptions: server.options, durationMs: HOUR_MS, identity });

  beforeAll(async () => {
    const { path, remove } = await temporaryDirectory();
    removeFolder = remove;
    const authority = await makeAuthority();
    const files = { cert: join(path, "cert.pem"), key: join(path, "key.pem") };
    const { cert, key } = await authority.sign();
    await writeFile(files.cert, cert);
    await writeFile(files.key, key);
    setDefaultCACertificates([...trusted, authority.ca]);
    server = await startAzure(files);
  });
  afterAll(async () => {
    setDefaultCACertificates(trusted);
    await server?.close();
    await removeFolder?.();
  });

  it("do not exist for its account, which has no directories", async () => {
    await assert.rejects(
      source(),
      /needs a storage account with a hierarchical namespace, unlike gatewaytest/,
    );
  });

  it("are made by the key that it issues to the identity of the gateway", async ({ onTestFinished }) => {
    // The emulator says of its account that it has no directories, and knows no signatures for them.
    const info = { isHierarchicalNamespaceEnabled: true } as never;
    const says = vi.spyOn(BlobServiceClient.prototype, "getAccountInfo").mockResolvedValue(info);
    onTestFinished(() => says.mockRestore());
    const { value } = await (await source()).issue("catalog/data/é t.lance", "read");
    const fields = Object.fromEntries(new URLSearchParams(value["azure_storage_sas_token"]));
    const { sp, se, skoid, sktid, skt = "", ske = "", sks, skv, spr, sv, sr, sdd, sig } = fields;
    assert.deepEqual({ skoid, sktid, sr, sdd }, { skoid: "object", sktid: "tenant", sr: "d", sdd: "3" });
    const service = new BlobServiceClient(server.options["azure_storage_endpoint"] as string, identity);
    const { value: key } = await service.getUserDelegationKey(new Date(skt), new Date(ske));
    const text = [
      ...[sp, "", se, `/blob/gatewaytest/${BUCKET}/catalog/data/é t.lance`, skoid, sktid, skt, ske, sks, skv],
      ...["", "", "", "", spr, sv, "d", "", "", "", "", "", "", ""],
    ].join("\n");
    assert.equal(sig, createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64"));
  });

  it("fail for an identity that it does not know", async () => {
    const stranger = { getToken: async () => ({ token: "a.b.c", expiresOnTimestamp: Date.now() + HOUR_MS }) };
    const options = { container: BUCKET, storageOptions: server.options, durationMs: HOUR_MS };
    const { issue } = await createSasSource({ ...options, identity: stranger });
    await assert.rejects(issue("t", "read"), (error) => isLanceError(error, "ServiceUnavailable"));
  });
});
