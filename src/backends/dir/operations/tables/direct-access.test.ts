import assert from "node:assert/strict";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type CredentialSource, createVendor } from "../../vending/vendor.ts";

const CREDENTIALS = ["access_key_id", "aws_access_key_id", "expires_at_millis"];

/** A source that says in the credential for what it is. */
const source: CredentialSource = {
  issue: async (key, permission) => ({
    value: { aws_access_key_id: `${permission} ${key}` },
    expiresAt: Date.now() + 3_600_000,
  }),
};
const vendor = createVendor({ source, most: "write", isOpen: true });

test("descriptions and declarations carry credentials for the directory of the table", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t), { vendor });
  await client.upload("createTable", "t", {}, rows([1]));
  await client.call("createNamespace", "ns");
  for (const vendCredentials of [undefined, true]) {
    const declared = await client.call("declareTable", `ns$t${vendCredentials}`, { vendCredentials });
    assert.equal(declared.storageOptions["aws_access_key_id"], `write ${declared.location?.slice(1)}`);
    const described = await client.call("describeTable", "t", { vendCredentials });
    assert.equal(described.storageOptions["aws_access_key_id"], `write ${described.location?.slice(1)}`);
    assert.deepEqual(Object.keys(described.storageOptions).sort(), CREDENTIALS);
  }
});

test("descriptions and declarations without credentials are to be had", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t), { vendor });
  const declared = await client.call("declareTable", "t", { vendCredentials: false });
  const described = await client.call("describeTable", "t", { vendCredentials: false });
  for (const { storageOptions } of [declared, described]) assert.deepEqual({ ...storageOptions }, {});
});

test("a catalog that cannot be written gets credentials for reading", async (t) => {
  const root = await temporaryDirectory(t);
  const writable = await openClient(t, root);
  await writable.upload("createTable", "t", {}, rows([1]));
  await writable.close();
  const client = await openClient(t, root, { vendor, readOnly: true });
  const { storageOptions } = await client.call("describeTable", "t");
  assert.match(storageOptions["aws_access_key_id"] ?? "", /^read /);
});

test("a name is not taken when credentials for it cannot be issued", async (t) => {
  const refusing: CredentialSource = {
    issue: () => Promise.reject(new LanceError("ServiceUnavailable", "no credentials")),
  };
  const client = await openClient(t, await temporaryDirectory(t), {
    vendor: createVendor({ source: refusing, most: "read", isOpen: true }),
  });
  await assert.rejects(client.call("declareTable", "t"), failsWith("ServiceUnavailable"));
  await assert.rejects(client.call("tableExists", "t"), failsWith("TableNotFound"));
  await client.call("declareTable", "t", { vendCredentials: false });
  await assert.rejects(client.call("describeTable", "t"), failsWith("ServiceUnavailable"));
});
