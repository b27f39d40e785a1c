import type { ClientCertificate } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Way } from "../authenticator.ts";
import { type CertificateRole, compileRoles } from "./roles.ts";

/** Proves callers by the certificates that they have shown when they connected. */
export function proveByCertificates(roles: readonly CertificateRole[]): Way {
  const roleOf = compileRoles(roles);
  const principals = new WeakMap<ClientCertificate, Principal>();
  return {
    needs: "a client certificate",
    prove({ certificate }) {
      if (certificate === undefined) return undefined;
      const name = nameOf(certificate);
      const known = principals.get(certificate);
      if (known !== undefined) return known;
      const { fingerprint: credentialId } = certificate;
      const made: Principal = { by: "mtls", name, credentialId, role: roleOf(name), groups: [], claims: {} };
      principals.set(certificate, made);
      return made;
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
