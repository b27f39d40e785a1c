import type { StorageOptions } from "../stores/storage-options.ts";

/** Other names under which clients look for an option, by the name that the `object_store` crate prints. */
const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  aws_access_key_id: ["access_key_id"],
  aws_secret_access_key: ["secret_access_key"],
  aws_session_token: ["session_token"],
  azure_storage_sas_token: ["azure_storage_sas_key", "sas_key", "sas_token"],
};

/** Returns storage options in which credentials have every name that clients know. */
export function inEverySpelling(options: StorageOptions): StorageOptions {
  const entries = Object.entries(options);
  const others = entries.flatMap(([name, value]) => (SPELLINGS[name] ?? []).map((other) => [other, value]));
  return Object.fromEntries([...others, ...entries]);
}
