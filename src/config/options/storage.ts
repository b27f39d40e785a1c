import { SECRET_NAME } from "../../runtime/text.ts";
import { type Environment, UsageError } from "../option-spec.ts";

/**
 * Environment variables of a vendor's tools that match options of its storage, by the scheme of the root. The storage's
 * own libraries find any other credentials.
 */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  s3: [
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_SKIP_SIGNATURE",
  ],
  gs: ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY"],
  az: [
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_STORAGE_USE_EMULATOR",
  ],
};

/** Parses an option of a storage, `key=value`. */
export function parseStorageOption(text: string): readonly [key: string, value: string] {
  const at = text.indexOf("=");
  const key = text.slice(0, at).toLowerCase();
  if (at < 0 || !/^[a-z][a-z0-9_]*$/.test(key)) {
    throw new UsageError("must be a storage option such as aws_region=eu-central-1");
  }
  return [key, text.slice(at + 1)];
}

/** Parses a storage option that all clients may know. */
export function parseClientStorageOption(text: string): readonly [key: string, value: string] {
  const [key, value] = parseStorageOption(text);
  if (SECRET_NAME.test(key) && key !== "aws_skip_signature") {
    throw new UsageError("must not be a credential, because every client gets it");
  }
  return [key, value];
}

/** Collects the options of the storage of a root; options override variables. */
export function storageOptionsOf(
  root: string,
  options: readonly (readonly [key: string, value: string])[],
  environment: Environment,
): Readonly<Record<string, string>> {
  const [scheme = ""] = /^[a-z0-9]+(?=:\/\/)/.exec(root) ?? [];
  const found = (VARIABLES[scheme] ?? []).flatMap((name) => {
    const value = environment[name];
    return value === undefined || value === "" ? [] : [[name.toLowerCase(), value] as const];
  });
  return Object.fromEntries([...found, ...options]);
}
