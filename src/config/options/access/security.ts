import { parseServerAddress } from "../../issuers.ts";
import { type OptionTable, UsageError } from "../../option-spec.ts";
import { parseCertificateRole, parseChoice, parseDuration, parseSwitch, parseText } from "../../parsers.ts";

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
