import { isIP } from "node:net";
import { CHANGE_TYPES, type ChangeType } from "../../namespace/change-event.ts";
import { isJsonObject } from "../../runtime/text.ts";
import { checkKeys, type Section, textAt } from "../config-file.ts";
import { type OptionTable, UsageError } from "../option-spec.ts";
import { parseAge, parseDuration, parseSize, parseText } from "../parsers.ts";

/** A receiver of events in the configuration. */
export interface WebhookOption {
  readonly url: string;
  /** Default: that of `--webhook-secret-file`. */
  readonly secretFile?: string | undefined;
  /** Default: all. */
  readonly types?: readonly ChangeType[] | undefined;
  /** Default: all. */
  readonly databases?: readonly string[] | undefined;
}

/**
 * Parses a receiver of events: its address, or a JSON object with its settings.
 *
 * @throws UsageError that does not repeat the address, whose query may be a secret.
 */
export function parseWebhook(text: string): WebhookOption {
  if (!text.startsWith("{")) return { url: parseAddress(text) };
  const entries: unknown = JSON.parse(text);
  if (!isJsonObject(entries)) throw new UsageError("must be an address or a map");
  try {
    return webhookOf({ entries, at: "" });
  } catch (error) {
    throw new UsageError(`has a mistake: ${(error as Error).message}`);
  }
}

function webhookOf(section: Section): WebhookOption {
  checkKeys(section, ["url", "secret-file", "types", "databases"]);
  const url = textAt(section, "url");
  if (url === undefined) throw new UsageError("url is missing");
  return {
    url: parseAddress(url, "url "),
    secretFile: textAt(section, "secret-file"),
    types: textsAt(section, "types")?.flatMap(typesOf),
    databases: textsAt(section, "databases"),
  };
}

function parseAddress(text: string, at = ""): string {
  const { protocol, username, password, hash } = URL.parse(text) ?? {};
  const isPlain = username === "" && password === "" && hash === "";
  if (isPlain && (protocol === "https:" || protocol === "http:")) return text;
  throw new UsageError(
    `${at}must be an address such as https://hooks.example.com/lance, without credentials before the host`,
  );
}

/** Returns the texts of the list at a key; undefined if the key is missing. */
function textsAt({ entries, at }: Section, key: string): readonly string[] | undefined {
  const value = entries[key];
  if (value === undefined || value === null) return undefined;
  const all = [value].flat();
  if (all.length > 0 && all.every((each) => typeof each === "string" && each !== "")) return all as string[];
  throw new UsageError(`${at}${key} must be a list of texts`);
}

/** Returns the types that a text means: one of them, or all of an object, such as `table.*`. */
function typesOf(text: string): readonly ChangeType[] {
  const found = CHANGE_TYPES.filter((type) => type === text || text === `${type.split(".", 1)[0]}.*`);
  if (found.length > 0) return found;
  throw new UsageError(
    `types has no ${JSON.stringify(text)}; there are ${CHANGE_TYPES.join(", ")}, namespace.* and table.*`,
  );
}

/** A network: an address, and how many of its bits count. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
}

/** Parses an IP address, or a network such as `169.254.10.0/24`. */
export function parseNetwork(text: string): Network {
  const [, address = "", digits] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = isIP(address) === 6 ? 128 : 32;
  const prefix = digits === undefined ? bits : Number(digits);
  if (isIP(address) !== 0 && prefix <= bits) return { address, prefix };
  throw new UsageError("must be an IP address or a network such as 169.254.10.0/24");
}

/** Options about events of changes (docs/events.md). */
export const EVENT_OPTIONS = {
  webhooks: {
    flag: "webhook-url",
    value: "URL",
    help: "Receiver of an event for each change of the catalog. In the configuration file it can be a map with settings of its own (docs/events.md#receivers).",
    parse: parseWebhook,
    repeatable: true,
    maps: true,
    secret: true,
  },
  webhookFiles: {
    flag: "webhook-url-file",
    value: "FILE",
    help: "File with the value of a --webhook-url. The gateway reads it again when it changes.",
    parse: parseText,
    repeatable: true,
    holds: "webhook-url",
  },
  webhookSecretFile: {
    flag: "webhook-secret-file",
    value: "FILE",
    help: "Secrets that sign events: a line, or two while they change, of whsec_ and 24 to 64 bytes in base64. The gateway reads it again when it changes.",
    parse: parseText,
  },
  webhookDir: {
    flag: "webhook-dir",
    value: "DIR",
    help: "Directory for events that wait and for those that could not be delivered; for this gateway alone.",
    parse: parseText,
  },
  webhookSource: {
    flag: "webhook-source",
    value: "URI",
    help: "Name of this gateway in events, as the attribute source of CloudEvents.",
    fallback: "/lance-gateway",
    parse(text) {
      if (/^[!-~]+$/.test(text) && URL.canParse(text, "http://base")) return text;
      throw new UsageError("must be a URI or the path of one, such as /gateways/eu");
    },
    needs: { flag: "webhook-url" },
  },
  webhookRetryMs: {
    flag: "webhook-retry-for",
    value: "AGE",
    help: "Time for which the delivery of an event is attempted, such as 90m, 12h or 7d.",
    fallback: "24h",
    parse: parseAge,
    needs: { flag: "webhook-url" },
  },
  webhookTimeoutMs: {
    flag: "webhook-timeout",
    value: "TIME",
    help: "Maximum time for a receiver to answer.",
    fallback: "10s",
    parse(text) {
      const timeout = parseDuration(text);
      if (timeout > 0) return timeout;
      throw new UsageError("must be longer than 0s");
    },
    needs: { flag: "webhook-url" },
  },
  webhookMaxWaitingBytes: {
    flag: "webhook-max-waiting",
    value: "SIZE",
    help: "Maximum size of events that wait for their delivery; further ones count as undeliverable.",
    fallback: "64MiB",
    parse: parseSize,
    needs: { flag: "webhook-url" },
  },
  webhookAllowedAddresses: {
    flag: "webhook-allow-address",
    value: "NETWORK",
    help: "IP address or network to which events may go although it is link-local or a cloud's metadata service, such as 169.254.10.0/24.",
    parse: parseNetwork,
    repeatable: true,
    needs: { flag: "webhook-url" },
  },
} as const satisfies OptionTable;
