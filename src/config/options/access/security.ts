import { parseGrant, parseIssuer, parseOpenIdScope, parseServerAddress } from "../../issuers.ts";
import { type OptionTable, UsageError } from "../../option-spec.ts";
import { parseCertificateRole, parseChoice, parseDuration, parseSwitch, parseText } from "../../parsers.ts";

/** Options about tokens, and about the roles of callers whose credentials come from elsewhere (docs/security.md#tokens). */
export const TOKEN_OPTIONS = {
  oidcIssuers: {
    flag: "oidc-issuer",
    value: "URL",
    help: "Issuer of the tokens that --auth oidc accepts, as in their claim iss. In the configuration file it can be a map with settings of its own (docs/security.md#tokens).",
    parse: parseIssuer,
    repeatable: true,
    maps: true,
  },
  oidcAudiences: {
    flag: "oidc-audience",
    value: "AUD",
    help: "Audience of the tokens of --auth oidc; a token must have one of them in its claim aud.",
    parse: parseText,
    repeatable: true,
  },
  oidcNameClaim: {
    flag: "oidc-name-claim",
    value: "NAME",
    help: "Claim of a token with the name of the caller.",
    fallback: "sub",
    parse: parseText,
  },
  oidcGroupsClaim: {
    flag: "oidc-groups-claim",
    value: "NAME",
    help: "Claim of a token with the groups of the caller; dots lead into objects, as in realm_access.roles.",
    fallback: "groups",
    parse: parseText,
  },
  consoleOidcClientId: {
    flag: "console-oidc-client-id",
    value: "ID",
    help: "Client id of the console, a public client of the issuers of --oidc-issuer. The console then offers to sign in there (docs/console.md#at-an-issuer). Default: callers bring tokens from elsewhere.",
    parse: parseText,
  },
  consoleOidcScope: {
    flag: "console-oidc-scope",
    value: "SCOPES",
    help: "Scopes that the console requests, separated by spaces; openid is among them.",
    fallback: "openid",
    parse: parseOpenIdScope,
    needs: { flag: "console-oidc-client-id" },
  },
  kubernetesAudiences: {
    flag: "kubernetes-audience",
    value: "AUD",
    help: "Audience of the service-account tokens of --auth kubernetes; a token must have one of them.",
    parse: parseText,
    repeatable: true,
  },
  kubernetesIssuer: {
    flag: "kubernetes-issuer",
    value: "URL",
    help: "Issuer of the cluster's tokens. Default: that of the gateway's own token. Without --kubernetes-api-server, the keys come from the issuer's discovery document.",
    parse: parseServerAddress,
  },
  kubernetesApiServer: {
    flag: "kubernetes-api-server",
    value: "URL",
    help: "API server that has the keys of the cluster's tokens. Default: https://kubernetes.default.svc, unless --kubernetes-issuer is given.",
    parse: parseServerAddress,
  },
  kubernetesCaFile: {
    flag: "kubernetes-ca-file",
    value: "FILE",
    help: "Certificate of the authority that has signed the API server's.",
    fallback: "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
    parse: parseText,
  },
  kubernetesTokenFile: {
    flag: "kubernetes-token-file",
    value: "FILE",
    help: "Token with which the gateway calls the API server.",
    fallback: "/var/run/secrets/kubernetes.io/serviceaccount/token",
    parse: parseText,
  },
  grants: {
    flag: "grant",
    value: "ROLE=WHO",
    help: "Role for callers with tokens: ROLE=group:NAME, scope:NAME, name:NAME, claim:NAME=VALUE or anyone. The mightiest role counts; without one a caller may do nothing.",
    parse: parseGrant,
    repeatable: true,
  },
  passTokens: {
    flag: "pass-tokens",
    help: "Pass the tokens that the gateway has accepted on to the upstream.",
    fallback: "false",
    parse: parseSwitch,
  },
} as const satisfies OptionTable;

/** Options that decide who may call, and what callers may do (docs/security.md). */
export const SECURITY_OPTIONS = {
  auth: {
    flag: "auth",
    value: "WAY",
    help: "Ways in which callers prove who they are, separated by commas: api-key (with --api-keys-file), oidc (with --oidc-issuer), kubernetes (with --kubernetes-audience) or mtls (with --tls-client-ca). Default: everyone who reaches the port may do everything.",
    parse: parseChoice(["api-key", "oidc", "kubernetes", "mtls"]),
    repeatable: true,
    commas: true,
    common: "Required credential: api-key, oidc, kubernetes, mtls.",
  },
  apiKeysFile: {
    flag: "api-keys-file",
    value: "FILE",
    help: "File of API keys that lance-gateway keys writes. The gateway reads it again when it changes.",
    parse: parseText,
    common: "File of API keys that lance-gateway keys writes.",
  },
  policyDir: {
    flag: "policy-dir",
    value: "DIR",
    help: "Directory of Cedar policies, *.cedar, which decide instead of roles. The gateway reads it again when it changes.",
    parse: parseText,
  },
  opaUrl: {
    flag: "opa-url",
    value: "URL",
    help: "Server of Open Policy Agent that decides instead of roles, with the path of the rule. Default of the path: /v1/data/lance/gateway/allowed (docs/security.md#open-policy-agent).",
    parse: parseServerAddress,
  },
  opaTokenFile: {
    flag: "opa-token-file",
    value: "FILE",
    help: "Token with which the gateway asks the server of --opa-url. The gateway reads it again when it changes.",
    parse: parseText,
  },
  opaCaFile: {
    flag: "opa-ca-file",
    value: "FILE",
    help: "Certificate of the authority that has signed that of --opa-url's server. Default: those that Node trusts.",
    parse: parseText,
    isFile: true,
  },
  opaTimeoutMs: {
    flag: "opa-timeout",
    value: "TIME",
    help: "Maximum time for an answer of --opa-url's server; calls fail with 503 then.",
    fallback: "1s",
    parse(text) {
      const timeout = parseDuration(text);
      if (timeout > 0) return timeout;
      throw new UsageError("must be longer than 0s");
    },
    needs: { flag: "opa-url" },
  },
  opaCacheMs: {
    flag: "opa-cache",
    value: "TIME",
    help: "Time for which a decision of --opa-url's server counts; 0s asks about every call.",
    fallback: "1s",
    parse: parseDuration,
    needs: { flag: "opa-url" },
  },
  pageTokenSecret: {
    flag: "page-token-secret",
    value: "SECRET",
    help: "Secret of 32 characters or more by which the page tokens of an upstream are sealed where --policy-dir hides parts of listings. Gateways behind one address need the same one. Default: a random one of the process.",
    parse(text) {
      if (text.length >= 32) return text;
      throw new UsageError("must have 32 characters or more");
    },
    secret: true,
    needs: { flag: "policy-dir" },
  },
  pageTokenSecretFile: {
    flag: "page-token-secret-file",
    value: "FILE",
    help: "File with the value of --page-token-secret. The gateway reads it again when it changes.",
    parse: parseText,
    holds: "page-token-secret",
    needs: { flag: "policy-dir" },
  },
  readOnly: {
    flag: "read-only",
    help: "Refuse everything that writes, on every backend, and leave the tables as they are.",
    fallback: "false",
    parse: parseSwitch,
    common: "Refuse everything that writes.",
  },
  insecure: {
    flag: "insecure",
    help: "Listen on an address that other machines reach, although everyone who reaches it may do everything.",
    fallback: "false",
    parse: parseSwitch,
  },
} as const satisfies OptionTable;

/** Options of encryption on the gateway's port, and of callers with certificates (docs/security.md#tls). */
export const TLS_OPTIONS = {
  tlsCert: {
    flag: "tls-cert",
    value: "FILE",
    help: "Certificate of the gateway in PEM, and then those of intermediate authorities; the port then speaks TLS only. Requires --tls-key. The gateway reads it again when it changes.",
    parse: parseText,
    common: "Certificate of the gateway, in PEM.",
  },
  tlsKey: {
    flag: "tls-key",
    value: "FILE",
    help: "Private key of --tls-cert, in PEM.",
    parse: parseText,
    common: "Private key of --tls-cert, in PEM.",
  },
  tlsClientCa: {
    flag: "tls-client-ca",
    value: "FILE",
    help: "Certificate authorities that sign the certificates of clients, in PEM, for --auth mtls.",
    parse: parseText,
  },
  mtlsRoles: {
    flag: "mtls-role",
    value: "ROLE=NAME",
    help: "Role for callers whose certificates have a name, such as writer=spiffe://example.org/ns/etl/* or reader=*.example.org; * matches everything except /. The mightiest role counts; without one a caller may do nothing.",
    parse: parseCertificateRole,
    repeatable: true,
  },
} as const satisfies OptionTable;
