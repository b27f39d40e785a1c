import assert from "node:assert/strict";
import { test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { readRoot } from "../../cli/commands/catalog.ts";
import { type Environment, UsageError } from "../option-spec.ts";
import { readServeOptions } from "../serve-options.ts";
import { storageOptionsOf } from "./catalog.ts";

const options = (args: readonly string[], environment: Environment) =>
  readServeOptions(sourcesOf(args, environment));

test("reads storage options as pairs, and takes the last value of a key", () => {
  const { storageOptions } = options(
    ["--storage-option", "AWS_Region=a", "--storage-option=aws_secret_access_key=b=c,d"],
    { LANCE_GATEWAY_STORAGE_OPTION: "unused=1" },
  );
  assert.deepEqual(storageOptions, [
    ["aws_region", "a"],
    ["aws_secret_access_key", "b=c,d"],
  ]);
  const [twice] = [storageOptionsOf("s3://b", [...storageOptions, ["aws_region", "z"]], {})];
  assert.equal(twice["aws_region"], "z");
  const { storageOptions: listed } = options([], { LANCE_GATEWAY_STORAGE_OPTION: "a=1, b=2" });
  assert.deepEqual(listed, [
    ["a", "1"],
    ["b", "2"],
  ]);
});

test("takes options for clients, but no credentials", () => {
  const { clientStorageOptions } = options(
    ["--client-storage-option", "aws_endpoint=https://s3.example.com"],
    {},
  );
  assert.deepEqual(clientStorageOptions, [["aws_endpoint", "https://s3.example.com"]]);
  for (const name of [
    "aws_secret_access_key",
    "AWS_SESSION_TOKEN",
    "google_service_account_key",
    "sas_token",
  ]) {
    assert.throws(
      () => options([], { LANCE_GATEWAY_CLIENT_STORAGE_OPTION: `${name}=hidden` }),
      (error) => error instanceof UsageError && !error.message.includes("hidden"),
    );
  }
});

test("reads storage options alike in serve and in the commands for maintenance", async () => {
  const environment = { LANCE_GATEWAY_STORAGE_OPTION: "aws_region=env", LANCE_GATEWAY_ROOT: "s3://b/p" };
  const read = (...args: readonly string[]) => readRoot(sourcesOf(args, environment), environment);
  assert.deepEqual((await read()).storageOptions, [["aws_region", "env"]]);
  const { storageOptions } = await read("--storage-option", "aws_region=flag");
  assert.deepEqual(storageOptions, [["aws_region", "flag"]]);
  assert.equal((await read()).root, "s3://b/p");
});

test("refuses a malformed storage option without repeating it", () => {
  for (const text of ["aws_secret_access_key:S3CRET", "=S3CRET", "a b=S3CRET"]) {
    assert.throws(
      () => options([`--storage-option=${text}`], {}),
      (error) => error instanceof UsageError && !error.message.includes("S3CRET"),
    );
  }
});

test("reads variables of the vendor for the vendor's own roots, and lets options override them", () => {
  const environment = { AWS_REGION: "env", AWS_ENDPOINT_URL: "https://e", AZURE_STORAGE_ACCOUNT_NAME: "n" };
  assert.deepEqual(storageOptionsOf("s3://b/p", [["aws_region", "option"]], environment), {
    aws_region: "option",
    aws_endpoint_url: "https://e",
  });
  assert.deepEqual(storageOptionsOf("az://c", [], environment), { azure_storage_account_name: "n" });
  assert.deepEqual(storageOptionsOf("./directory", [], environment), {});
});
