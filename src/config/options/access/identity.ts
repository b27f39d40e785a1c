import { type OptionTable, REMOTE_KINDS } from "../../option-spec.ts";
import { parseChoice, parseSwitch, parseText } from "../../parsers.ts";

/** Options for tokens of a provider. */
const TOKEN_REQUEST = { flag: "upstream-identity", is: ["client-credentials", "token-exchange"] } as const;

/** Options for signatures. */
const SIGNATURE = { flag: "upstream-identity", is: ["sigv4"] } as const;

/** Options for a single credential. */
const CREDENTIAL = { flag: "upstream-identity", is: ["service"] } as const;

/** Options that select the credentials with which the gateway calls an upstream. */
export const IDENTITY_OPTIONS = {
  upstreamIdentity: {
    flag: "upstream-identity",
    value: "KIND",
    help: "Credentials for the upstream: the client's own (passthrough), one credential for all calls (service), a token of the gateway (client-credentials), a token exchanged for the client's (token-exchange), an AWS signature of each request (sigv4, for REST upstreams), or an identity token of Google (gcp-id-token).",
    fallback: "passthrough",
    parse: parseChoice([
      "passthrough",
      "service",
      "client-credentials",
      "token-exchange",
      "sigv4",
      "gcp-id-token",
    ]),
    backends: REMOTE_KINDS,
    place: true,
  },
  upstreamApiKey: {
    flag: "upstream-api-key",
    value: "KEY",
    help: "API key of --upstream-identity service.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    secret: true,
    needs: CREDENTIAL,
  },
  upstreamApiKeyFile: {
    flag: "upstream-api-key-file",
    value: "FILE",
    help: "File with the value of --upstream-api-key. The gateway reads it again when it changes.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    holds: "upstream-api-key",
    needs: CREDENTIAL,
  },
  upstreamToken: {
    flag: "upstream-token",
    value: "TOKEN",
    help: "Bearer token of --upstream-identity service.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    secret: true,
    needs: CREDENTIAL,
  },
  upstreamTokenFile: {
    flag: "upstream-token-file",
    value: "FILE",
    help: "File with the value of --upstream-token. The gateway reads it again when it changes.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    holds: "upstream-token",
    needs: CREDENTIAL,
  },
  tokenEndpoint: {
    flag: "token-endpoint",
    value: "URI",
    help: "Token endpoint of the OAuth 2.0 provider, for client-credentials and token-exchange.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    needs: TOKEN_REQUEST,
  },
  tokenClientId: {
    flag: "token-client-id",
    value: "ID",
    help: "Client id of the gateway at the provider.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    needs: TOKEN_REQUEST,
  },
  tokenClientSecret: {
    flag: "token-client-secret",
    value: "SECRET",
    help: "Client secret of the gateway at the provider. Default: none, for a public client.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    secret: true,
    needs: TOKEN_REQUEST,
  },
  tokenClientSecretFile: {
    flag: "token-client-secret-file",
    value: "FILE",
    help: "File with the value of --token-client-secret. The gateway reads it again when it changes.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    holds: "token-client-secret",
    needs: TOKEN_REQUEST,
  },
  tokenScope: {
    flag: "token-scope",
    value: "SCOPES",
    help: "Scopes to request, separated by spaces.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
    needs: TOKEN_REQUEST,
  },
  tokenAudience: {
    flag: "token-audience",
    value: "NAME",
    help: "Audience to request, for client-credentials, token-exchange and gcp-id-token.",
    parse: parseText,
    backends: REMOTE_KINDS,
    place: true,
  },
  awsRegion: {
    flag: "aws-region",
    value: "REGION",
    help: "Region of the signatures of --upstream-identity sigv4. Default: AWS_REGION or AWS_DEFAULT_REGION.",
    parse: parseText,
    backends: ["rest"],
    place: true,
    needs: SIGNATURE,
  },
  awsService: {
    flag: "aws-service",
    value: "NAME",
    help: "Service of the signatures of --upstream-identity sigv4, for example vpc-lattice-svcs or lambda.",
    fallback: "execute-api",
    parse: parseText,
    backends: ["rest"],
    place: true,
    needs: SIGNATURE,
  },
  awsUnsignedBodies: {
    flag: "aws-unsigned-bodies",
    help: "Leave JSON bodies out of the signatures of --upstream-identity sigv4, as VPC Lattice requires.",
    fallback: "false",
    parse: parseSwitch,
    backends: ["rest"],
    place: true,
    needs: SIGNATURE,
  },
} as const satisfies OptionTable;
