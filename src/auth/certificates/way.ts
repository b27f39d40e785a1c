import type { ClientCertificate } from "../../namespace/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Way } from "../authenticator.ts";
import { type CertificateRole, compileRoles } from "./roles.ts";

/** Proves callers by the certificates that they have shown when they connected. */
export function proveByCertificates(roles: readonly CertificateRole[]): Way {
  const roleOf = compileRoles(roles);
  return {
    needs: "a client certificate",
    prove({ certificate }) {
      if (certificate === undefined) return undefined;
      const { fingerprint: credentialId } = certificate;
      const name = nameOf(certificate);
      return { by: "mtls", name, credentialId, role: roleOf(name), groups: [], claims: {} };
    },
    close() {},
  };
}

function nameOf({ fault, name, expires }: ClientCertificate): string {
  if (fault !== undefined) throw refusal(`is not accepted: ${fault}`);
  // A connection may outlive the certificate with which it began.
  if (expires <= Date.now()) throw refusal("has expired");
  if (name === undefined) throw refusal("has no URI, DNS name or e-mail address as alternative name");
  return name;
}

function refusal(reason: string): LanceError {
  return new LanceError("Unauthenticated", `the client certificate ${reason}`);
}
