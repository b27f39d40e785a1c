import { type OptionTable, REMOTE_KINDS, UsageError } from "../../option-spec.ts";
import { parseAge, parseChoice, parseSwitch, parseText } from "../../parsers.ts";

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

/** Shortest and longest life of a session of AWS, in milliseconds. */
const DURATIONS = [15 * 60_000, 12 * 3_600_000] as const;

/** Options about the credentials that clients get for the storage of a directory (docs/security.md). */
export const VENDING_OPTIONS = {
  vend: {
    flag: "vend",
    value: "static|aws-sts|google-token|azure-sas",
    help: "Hand out credentials for the object store with describe and declare: static (those of --vend-file), or an assumed role (aws-sts), a token (google-token) or a signature (azure-sas) that is cut to the directory of the table. Default: clients bring their own (docs/security.md).",
    parse: parseChoice(["static", "aws-sts", "google-token", "azure-sas"]),
    backends: ["dir"],
  },
  vendAccess: {
    flag: "vend-access",
    value: "read|write|manage",
    help: "Most that handed-out credentials allow in the directory of a table: read, also write, or also delete its files (manage). A caller gets no more than its role allows.",
    fallback: "read",
    parse: parseChoice(["read", "write", "manage"]),
    backends: ["dir"],
    needs: { flag: "vend" },
  },
  vendDurationMs: {
    flag: "vend-duration",
    value: "AGE",
    help: "Life of handed-out credentials, from 15m to 12h, if the service grants it; google-token lives for up to an hour.",
    fallback: "1h",
    parse(text) {
      const duration = parseAge(text);
      if (duration >= DURATIONS[0] && duration <= DURATIONS[1]) return duration;
      throw new UsageError("must be from 15m to 12h");
    },
    backends: ["dir"],
    needs: { flag: "vend" },
  },
  vendFile: {
    flag: "vend-file",
    value: "FILE",
    help: "Locations in the object store and the storage options that clients get for the tables in them, in YAML or JSON, for --vend static.",
    parse: parseText,
    isFile: true,
    backends: ["dir"],
  },
  vendAwsRole: {
    flag: "vend-aws-role",
    value: "ARN",
    help: "Role that the gateway assumes for --vend aws-sts, for example arn:aws:iam::123456789012:role/tables.",
    parse(text) {
      if (/^arn:[a-z0-9-]+:iam::\d{12}:role\/[!-~]+$/.test(text)) return text;
      throw new UsageError("must be the ARN of a role such as arn:aws:iam::123456789012:role/tables");
    },
    backends: ["dir"],
  },
  vendAwsExternalId: {
    flag: "vend-aws-external-id",
    value: "ID",
    help: "External id that the role of --vend-aws-role asks for.",
    parse: parseText,
    backends: ["dir"],
  },
  vendAwsEndpoint: {
    flag: "vend-aws-endpoint",
    value: "URL",
    help: "Endpoint of STS, for services other than that of AWS. Default: that of the region.",
    parse(text) {
      if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
      throw new UsageError("must be a URL such as https://sts.example.com");
    },
    backends: ["dir"],
  },
} as const satisfies OptionTable;
