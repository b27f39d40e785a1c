import { createOptionReader, type OptionReader, type StorageOptions } from "../dir/stores/storage-options.ts";

/** Checks whether options open a storage by themselves, for the gateway's library and for the engine, by schemes. */
const IS_COMPLETE: Readonly<Record<string, (options: StorageOptions) => boolean>> = {
  // The engine knows no other prefix.
  s3: (options) => {
    const read = createOptionReader(options, ["aws_"]);
    return has(read, "access_key_id") && has(read, "secret_access_key");
  },
  gs: (options) => {
    const read = createOptionReader(options, ["google_"]);
    const key = read.text("service_account_key");
    return key === undefined ? Boolean(options["google_storage_token"]?.trim()) : isServiceKey(key);
  },
  az: (options) => {
    const read = createOptionReader(options, ["azure_storage_", "azure_"]);
    const [key, sas] = [
      has(read, "account_key", "access_key", "master_key"),
      has(read, "sas_token", "sas_key"),
    ];
    return key || sas;
  },
};

/**
 * Options by which a library signs in as somebody else, reads a file of this machine, or asks another service for credentials, and those that
 * the gateway's library knows and the engine does not.
 */
const OTHER_IDENTITY =
  /^(?:gcs|s3)_|file|profile|role|imds|metadata|msi|identity|federated|authority|tenant|client_(?:id|secret)|container_credentials|credentials_(?:full_|relative_)?uri|azure_cli|bearer|fabric|application_credentials|service_account(?:_path)?$|^proxy_|_proxy$/i;

/** Variables of the environment with an identity that the engine takes for Azure's storage rather than a signature in the options. */
const AZURE_IDENTITY =
  /^azure_(?:storage_)?(?:account_key|access_key|master_key|client_id|federated_token_file|token|bearer_token)$/i;

/**
 * Returns the options with which an upstream's own credentials open a storage; undefined if the upstream sends none that are complete, so that
 * a library would look for the gateway's.
 *
 * @param location of a table, in a bucket; no credentials open a directory of a disk
 * @param environment of the process
 */
export function vendedAccess(
  location: string,
  options: StorageOptions,
  environment: Readonly<Record<string, string | undefined>>,
): StorageOptions | undefined {
  const [scheme = ""] = location.split("://", 1);
  if (IS_COMPLETE[scheme]?.(options) !== true) return undefined;
  if (scheme === "az" && Object.keys(environment).some((name) => AZURE_IDENTITY.test(name))) return undefined;
  return Object.fromEntries(Object.entries(options).filter(([name]) => !OTHER_IDENTITY.test(name)));
}

function has(read: OptionReader, ...names: readonly string[]): boolean {
  return Boolean(read.text(...names)?.trim());
}

/** Whether a text is the key of a service account: other kinds of credentials name files and addresses from which they follow. */
function isServiceKey(text: string | undefined): boolean {
  if (text === undefined) return false;
  try {
    const key: unknown = JSON.parse(text);
    if (typeof key !== "object" || key === null) return false;
    const { type, private_key, client_email, disable_oauth } = key as Readonly<Record<string, unknown>>;
    return (
      type === "service_account" && Boolean(private_key) && Boolean(client_email) && disable_oauth !== true
    );
  } catch {
    return false;
  }
}
