import { type OptionTable, UsageError } from "../option-spec.ts";
import { parseAge, parseDuration, parseSize, parseText } from "../parsers.ts";
import { parseNetwork, parseWebhook } from "../webhooks.ts";

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
