import type { ClientCertificate } from "../namespace/call/call.ts";
import { type Principal, ROLE_NAMES, type Role } from "../namespace/call/principal.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Way } from "./authenticator.ts";

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

/** A role for the callers whose certificates have names of a form, in which `*` matches everything except `/`. */
interface CertificateRole {
  readonly role: Role;
  readonly pattern: string;
}

/** Compiles roles into the function from the name of a certificate to the mightiest role; `none` for names of no form. */
export function compileRoles(roles: readonly CertificateRole[]): (name: string) => Role {
  const forms = roles.map(({ role, pattern }) => ({ role, form: formOf(pattern) }));
  return (name) => {
    const given = new Set(forms.filter(({ form }) => form.test(name)).map(({ role }) => role));
    return ROLE_NAMES.find((role) => given.has(role)) ?? "none";
  };
}

function formOf(pattern: string): RegExp {
  const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`^${pattern.split("*").map(escaped).join("[^/]*")}$`, "s");
}
