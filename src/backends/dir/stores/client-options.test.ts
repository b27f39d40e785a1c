import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { openAzure } from "./azure/client.ts";
import { openStore } from "./open-store.ts";
import { clientOptionsOf } from "./storage-options.ts";

const CREDENTIALS = {
  aws_access_key_id: "id",
  aws_secret_access_key: "hidden",
  aws_session_token: "hidden",
  google_service_account_key: "hidden",
  azure_storage_account_key: Buffer.from("hidden").toString("base64"),
  azure_storage_sas_token: "sig=hidden",
};

test("clients of a bucket learn its address and its region, in the names of the object store library", async () => {
  const { clientOptions } = await openStore("s3://bucket/p", {
    endpoint: "http://minio:9000/",
    aws_allow_http: "true",
    timeout: "10s",
    ...CREDENTIALS,
  });
  assert.deepEqual(clientOptions, {
    aws_endpoint: "http://minio:9000",
    aws_region: "us-east-1",
    allow_http: "true",
  });
  const amazon = await openStore("s3://bucket", { region: "eu-central-1", ...CREDENTIALS });
  assert.deepEqual(amazon.clientOptions, { aws_region: "eu-central-1" });
});

test("clients of a container learn its account", async () => {
  const account = { account_name: "n", azure_endpoint: "http://127.0.0.1:1/n", allow_http: "true" };
  assert.deepEqual((await openAzure("c", { ...account, ...CREDENTIALS })).clientOptions, {
    azure_storage_account_name: "n",
    azure_storage_endpoint: "http://127.0.0.1:1/n",
    allow_http: "true",
  });
  const emulator = await openAzure("c", { azure_storage_use_emulator: "true" });
  assert.deepEqual(emulator.clientOptions, {
    azure_storage_account_name: "devstoreaccount1",
    azure_storage_use_emulator: "true",
  });
});

test("an endpoint loses its user, its password and its query", () => {
  const endpoint = "https://user:hidden@store.example.com:8443/path/?sig=hidden";
  for (const service of ["s3", "az"] as const) {
    const [shown] = Object.values(clientOptionsOf(service, { endpoint }));
    assert.equal(shown, "https://store.example.com:8443/path");
  }
});

test("declare and describe give clients the options of the storage, whatever they ask of credentials", async (t) => {
  const root = await temporaryDirectory(t);
  const { store } = await openStore(root, {});
  const client = await openClient(t, root, {
    storage: {
      store,
      root: join(root, "catalog"),
      engineOptions: CREDENTIALS,
      clientOptions: { aws_endpoint: "http://minio:9000", aws_region: "r" },
    },
    clientStorageOptions: { aws_endpoint: "https://public.example.com" },
  });
  const expected = { aws_endpoint: "https://public.example.com", aws_region: "r" };
  await client.upload("createTable", "written", {}, rows([1]));
  for (const vendCredentials of [undefined, true, false]) {
    const declared = await client.call("declareTable", `t${vendCredentials}`, { vendCredentials });
    assert.deepEqual({ ...declared.storageOptions }, expected);
    for (const loadDetailedMetadata of [true, false]) {
      const asked = { vendCredentials, loadDetailedMetadata };
      const described = await client.call("describeTable", "written", asked);
      assert.deepEqual({ ...described.storageOptions }, expected);
    }
  }
});

test("tables of a disk have no storage options", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  assert.deepEqual({ ...(await client.call("declareTable", "t")).storageOptions }, {});
  assert.deepEqual({ ...(await client.call("describeTable", "t")).storageOptions }, {});
});
