import { type OptionTable, UPSTREAM_KINDS } from "../option-spec.ts";
import { parseText } from "../parsers.ts";

/** Options of commands that call a server; `serve` has none of them. */
export const CLIENT_OPTIONS = {
  context: {
    flag: "context",
    value: "CONTEXT",
    help: "Saved connection (lance-gateway context). Default: the one in use, unless another option names the data.",
    parse: parseText,
    common: "Saved connection. Default: the one in use.",
  },
  apiKey: {
    flag: "api-key",
    value: "KEY",
    help: "API key of the calls. Other users of the machine see it in the list of processes: prefer the variable, or --key-file of lance-gateway context add.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    secret: true,
    common: "API key. Prefer LANCE_GATEWAY_API_KEY: the list of processes shows this.",
  },
} as const satisfies OptionTable;
