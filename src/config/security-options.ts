import type { OptionTable } from "./option-spec.ts";
import { parseChoice, parseSwitch, parseText } from "./parsers.ts";

/** Options that decide who may call, and what callers may do (docs/security.md). */
export const SECURITY_OPTIONS = {
  auth: {
    flag: "auth",
    value: "WAY",
    help: "Ways in which callers prove who they are, separated by commas: api-key (with --api-keys-file), oidc (with --oidc-issuer), kubernetes (with --kubernetes-audience) or mtls (with --tls-client-ca). Default: everyone who reaches the port may do everything.",
    parse: parseChoice(["api-key", "oidc", "kubernetes", "mtls"]),
    repeatable: true,
    commas: true,
  },
  apiKeysFile: {
    flag: "api-keys-file",
    value: "FILE",
    help: "File of API keys that lance-gateway keys writes. The gateway reads it again when it changes.",
    parse: parseText,
  },
  policyDir: {
    flag: "policy-dir",
    value: "DIR",
    help: "Directory of Cedar policies, *.cedar, which decide instead of roles. The gateway reads it again when it changes.",
    parse: parseText,
  },
  readOnly: {
    flag: "read-only",
    help: "Refuse everything that writes, on every backend, and leave the tables as they are.",
    fallback: "false",
    parse: parseSwitch,
  },
  insecure: {
    flag: "insecure",
    help: "Listen on an address that other machines reach, although everyone who reaches it may do everything.",
    fallback: "false",
    parse: parseSwitch,
  },
} as const satisfies OptionTable;
