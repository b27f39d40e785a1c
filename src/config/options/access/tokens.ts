import { parseGrant, parseIssuer, parseOpenIdScope, parseServerAddress } from "../../issuers.ts";
import type { OptionTable } from "../../option-spec.ts";
import { parseSwitch, parseText } from "../../parsers.ts";

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
