import { createOptionReader, type StorageOptions } from "./storage-options.ts";

/** The public options of a service: each with its name in answers, and the names that it may have without prefix. */
interface PublicOptions {
  readonly prefixes: readonly string[];
  readonly names: readonly (readonly [name: string, ...aliases: string[]])[];
}

const PUBLIC = {
  s3: {
    prefixes: ["aws_", "s3_"],
    names: [
      ["aws_endpoint", "endpoint", "endpoint_url", "endpoint_url_s3"],
      ["aws_region", "region", "default_region"],
      ["aws_virtual_hosted_style_request", "virtual_hosted_style_request"],
      ["aws_skip_signature", "skip_signature"],
      ["allow_http", "allow_http"],
    ],
  },
  az: {
    prefixes: ["azure_storage_", "azure_"],
    names: [
      ["azure_storage_account_name", "account_name"],
      ["azure_storage_endpoint", "endpoint"],
      ["azure_storage_use_emulator", "use_emulator"],
      ["allow_http", "allow_http"],
    ],
  },
} as const satisfies Readonly<Record<string, PublicOptions>>;

/**
 * Returns the options with which clients reach a storage themselves, in the words of the `object_store` crate: where it
 * is, but no credentials.
 *
 * @param options the options of the gateway, which contain secrets
 */
export function clientOptionsOf(service: keyof typeof PUBLIC, options: StorageOptions): StorageOptions {
  const { prefixes, names } = PUBLIC[service];
  const read = createOptionReader(options, prefixes);
  const found = names.flatMap(([name, ...aliases]) => {
    const value = read.text(...aliases);
    return value === undefined ? [] : [[name, name.endsWith("_endpoint") ? withoutSecrets(value) : value]];
  });
  return Object.fromEntries(found);
}

/** Removes user, password and query of a URL: a shared access signature is a query. */
function withoutSecrets(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/\/$/, "")}`;
}
