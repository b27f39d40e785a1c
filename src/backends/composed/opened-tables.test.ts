import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { DescribedTable, DescribedTables } from "./described-tables.ts";
import { createOpenedTables } from "./opened-tables.ts";
import type { RowStorages, WantedStorage } from "./row-storages.ts";
import { vendedAccess } from "./storage-access.ts";

const OWN = { aws_secret_access_key: "gateways", aws_endpoint: "https://own.example.com" };

/** Opens the storage of a table with options of the upstream, and returns those that the engine would get. */
async function optionsFor(
  storageOptions: Readonly<Record<string, string>>,
  {
    bucket = "s3://lake",
    allowedLocations = [bucket],
  }: { bucket?: string; allowedLocations?: string[] } = {},
) {
  const wanted: WantedStorage[] = [];
  const storages = {
    async acquire(storage: WantedStorage) {
      wanted.push(storage);
      throw new Error(`cannot open with ${JSON.stringify(storage.options)}`);
    },
  } as unknown as RowStorages;
  const opened = createOpenedTables({} as DescribedTables, storages, {
    log: undefined as never,
    allowedLocations,
    storageOptionsOf: () => OWN,
  });
  const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"] });
  const described = { id: ["t"], location: `${bucket}/t.lance`, properties: {}, storageOptions };
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
    const { failure } = await optionsFor({ aws_access_key_id: "k", aws_secret_access_key: "s3cret" });
    assert.ok(isLanceError(failure, "ServiceUnavailable"));
    assert.doesNotMatch(failure.message, /s3cret/);
  });

  const endpoint = "https://evil.example.com";
  const serviceKey = (key: object) => ({ google_service_account_key: JSON.stringify(key) });
  const account = { type: "service_account", private_key: "p", client_email: "a@example.com" };
  const incomplete: Readonly<Record<string, readonly (readonly [string, Record<string, string>])[]>> = {
    "s3://lake": [
      ["a name of a key for encryption", { aws_sse_kms_key_id: "k" }],
      ["a flag about signatures", { aws_skip_signature: "false" }],
      ["half a key", { aws_access_key_id: "k" }],
      ["an empty secret", { aws_access_key_id: "k", aws_secret_access_key: " " }],
      ["names that the engine does not know", { s3_access_key_id: "k", s3_secret_access_key: "s" }],
      ["a session token alone", { aws_session_token: "t" }],
    ],
    "gs://lake": [
      ["a file of this machine", { google_service_account: "/etc/key.json" }],
      [
        "a key that names a file",
        serviceKey({ type: "external_account", credential_source: { file: "/etc/x" } }),
      ],
      ["a key that signs nothing", serviceKey({ ...account, disable_oauth: true })],
      ["a key that is not JSON", { google_service_account_key: "x", google_storage_token: "t" }],
    ],
    "az://lake": [
      ["an account without a key", { azure_storage_account_name: "a" }],
      ["an identity of this machine", { azure_federated_token_file: "/var/token", azure_client_id: "c" }],
      ["an empty signature", { azure_storage_sas_token: "" }],
    ],
  };
  for (const [bucket, cases] of Object.entries(incomplete))
    for (const [what, sent] of cases)
      it(`takes ${what} in ${bucket} for no credentials`, async () => {
        const options = { ...sent, aws_endpoint: endpoint, azure_storage_endpoint: endpoint };
        assert.deepEqual((await optionsFor(options, { bucket })).options, OWN);
        const { failure } = await optionsFor(options, { bucket, allowedLocations: [] });
        assert.ok(isLanceError(failure, "PermissionDenied"));
      });

  it("needs no --allowed-location with complete credentials of the upstream, and reads no file that it names", async () => {
    const files = {
      azure_federated_token_file: "/f",
      google_service_account: "/f",
      aws_web_identity_token_file: "/f",
    };
    const complete: Readonly<Record<string, readonly Record<string, string>[]>> = {
      "s3://lake": [{ aws_access_key_id: "k", aws_secret_access_key: "s", aws_endpoint: endpoint }],
      "gs://lake": [{ google_storage_token: "t" }, serviceKey(account)],
      "az://lake": [
        { azure_storage_account_name: "a", azure_storage_sas_token: "s" },
        { azure_storage_account_name: "a", azure_storage_account_key: "k" },
      ],
    };
    for (const [bucket, cases] of Object.entries(complete))
      for (const sent of cases) {
        const { options } = await optionsFor({ ...sent, ...files }, { bucket, allowedLocations: [] });
        assert.deepEqual(options, sent);
      }
  });

  it("takes a signature for no credentials where the environment has an identity that the engine prefers", () => {
    const options = { azure_storage_account_name: "a", azure_storage_sas_token: "s" };
    assert.deepEqual(vendedAccess("az://lake/t", options, {}), options);
    assert.equal(vendedAccess("az://lake/t", options, { AZURE_STORAGE_ACCOUNT_KEY: "k" }), undefined);
  });
});
