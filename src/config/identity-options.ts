import { type OptionTable, UPSTREAM_KINDS } from "./option-spec.ts";
import { parseChoice, parseText } from "./parsers.ts";

/** The options that say with whose credentials the gateway calls an upstream. */
export const IDENTITY_OPTIONS = {
  upstreamIdentity: {
    flag: "upstream-identity",
    value: "KIND",
    help: "Credentials for the upstream: the client's own (passthrough), one credential for all calls (service), a token of the gateway (client-credentials), or a token exchanged for the client's (token-exchange).",
    fallback: "passthrough",
    parse: parseChoice(["passthrough", "service", "client-credentials", "token-exchange"]),
    backends: UPSTREAM_KINDS,
    place: true,
  },
  upstreamApiKey: {
    flag: "upstream-api-key",
    value: "KEY",
    help: "API key of --upstream-identity service.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
    secret: true,
  },
  upstreamToken: {
    flag: "upstream-token",
    value: "TOKEN",
    help: "Bearer token of --upstream-identity service.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
    secret: true,
  },
  tokenEndpoint: {
    flag: "token-endpoint",
    value: "URI",
    help: "Token endpoint of the OAuth 2.0 provider, for client-credentials and token-exchange.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
  },
  tokenClientId: {
    flag: "token-client-id",
    value: "ID",
    help: "Client id of the gateway at the provider.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
  },
  tokenClientSecret: {
    flag: "token-client-secret",
    value: "SECRET",
    help: "Client secret of the gateway at the provider. Default: none, for a public client.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
    secret: true,
  },
  tokenScope: {
    flag: "token-scope",
    value: "SCOPES",
    help: "Scopes to request, separated by spaces.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
  },
  tokenAudience: {
    flag: "token-audience",
    value: "NAME",
    help: "Audience to request.",
    parse: parseText,
    backends: UPSTREAM_KINDS,
    place: true,
  },
} as const satisfies OptionTable;
