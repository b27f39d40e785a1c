import type { OptionTable } from "../../option-spec.ts";
import { parseCertificateRole, parseText } from "../../parsers.ts";

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
