import { ROLE_NAMES, type Role } from "../../namespace/call/roles.ts";

/** A role for the callers whose certificates have names of a form, in which `*` matches everything except `/`. */
export interface CertificateRole {
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
