import { EXPIRY_OPTION, inEverySpelling } from "../../../namespace/credential-options.ts";
import type { Properties } from "./catalog.ts";

/** Names of Iceberg's REST API, and the options that they become. */
const ICEBERG: Readonly<Record<string, string>> = {
  "s3.access-key-id": "aws_access_key_id",
  "s3.secret-access-key": "aws_secret_access_key",
  "s3.session-token": "aws_session_token",
  "s3.session-token-expires-at-ms": EXPIRY_OPTION,
  "s3.endpoint": "aws_endpoint",
  "s3.region": "aws_region",
  "s3.client.region": "aws_region",
  "client.region": "aws_region",
  "gcs.oauth2.token": "google_storage_token",
  "gcs.oauth2.token-expires-at": EXPIRY_OPTION,
  "adls.account-name": "azure_storage_account_name",
};

/** Options whose name ends with the host of the account. */
const OF_HOST: readonly (readonly [prefix: string, name: string])[] = [
  ["adls.sas-token.", "azure_storage_sas_token"],
  ["adls.sas-token-expires-at-ms.", EXPIRY_OPTION],
];

/** A part of the configuration that a catalog of Iceberg's family returns. */
export interface PrefixedConfig {
  /** Location below which it counts. */
  readonly prefix: string;
  readonly config: Properties;
}

/**
 * Returns the storage options of a table from the configurations that a catalog returns: that of the longest prefix of the
 * location. Configurations for other places are left out, and so are unknown settings.
 */
export function icebergOptions(
  location: string,
  configs: readonly PrefixedConfig[],
  shared: Properties = {},
): Properties {
  const [best] = configs
    .filter(({ prefix }) => isBelow(location, prefix))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...shared, ...best?.config })) {
    const known = ICEBERG[name];
    if (known !== undefined) options[known] = value;
    for (const [prefix, own] of OF_HOST) {
      if (!name.startsWith(prefix)) continue;
      options[own] = value;
      options["azure_storage_account_name"] ??= name.slice(prefix.length).split(".", 1)[0] as string;
    }
    if (name === "s3.path-style-access")
      options["aws_virtual_hosted_style_request"] = String(value !== "true");
    if (name === "s3.endpoint" && value.startsWith("http://")) options["allow_http"] = "true";
  }
  return inEverySpelling(options);
}

/** Whether a location is in a place, and not merely spelled alike. */
function isBelow(location: string, prefix: string): boolean {
  if (!location.startsWith(prefix)) return false;
  return prefix.endsWith("/") || location.length === prefix.length || location[prefix.length] === "/";
}
