/** Storage options, by their names in Lance's clients. */
type Options = Readonly<Record<string, string>>;

/** Name of the option with the end of credentials, in epoch milliseconds. */
export const EXPIRY_OPTION = "expires_at_millis";

/** Other names under which clients look for a credential, by the name that the `object_store` crate prints. */
const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  aws_access_key_id: ["access_key_id"],
  aws_secret_access_key: ["secret_access_key"],
  aws_session_token: ["session_token"],
  azure_storage_sas_token: ["azure_storage_sas_key", "sas_key", "sas_token"],
};

/** Returns storage options in which credentials have every name that clients know. */
export function inEverySpelling(options: Options): Options {
  const entries = Object.entries(options);
  const others = entries.flatMap(([name, value]) => (SPELLINGS[name] ?? []).map((other) => [other, value]));
  return Object.fromEntries([...others, ...entries]);
}

/** Returns when credentials expire, in epoch milliseconds; undefined if they do not say. */
export function expiryOf(options: Options): number | undefined {
  const text = options[EXPIRY_OPTION];
  const time = text === undefined ? Number.NaN : Number(text);
  return Number.isFinite(time) ? time : undefined;
}
