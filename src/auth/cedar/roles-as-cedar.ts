import { ROLE_NAMES, ROLES } from "../../namespace/call/principal.ts";

/** Returns the policies that allow what the roles allow where no policies decide; the role `none` needs no policy. */
export function rolePolicies(): string {
  const policies = ROLE_NAMES.filter((role) => ROLES[role].length > 0).map((role) => {
    const actions = ROLES[role].map((action) => `Action::"${action}"`).join(", ");
    return `@id("role-${role}")\npermit (\n  principal in Role::"${role}",\n  action in [${actions}],\n  resource\n);\n`;
  });
  return policies.join("\n");
}
