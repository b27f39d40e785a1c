import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import { tableName } from "../catalog/work.ts";

/** The namespace of the measured tables, and the group of the caller that may read them. */
export const BENCH = "bench";

/** Number of policies in {@link policySet}. */
export const POLICIES = 1_000;

/** Every such table is hidden from everyone but owners. */
const HIDDEN_STEP = 20;

/** Returns the names of the tables that the policies show to the group, of a number of tables. */
export function visibleTables(count: number): string[] {
  return Array.from({ length: count }, (_, number) => number)
    .filter((number) => number % HIDDEN_STEP !== 0)
    .map(tableName);
}

/** Returns 1,000 policies: those of the roles, a namespace for each of 498 teams, and 498 protected tables. */
export function policySet(): string {
  const roles = rolePolicies();
  const own = POLICIES - (roles.match(/@id/g)?.length ?? 0) - 1;
  const teams = Array.from({ length: Math.ceil(own / 2) }, (_, i) => reading(`team${i}`));
  const hidden = Array.from({ length: Math.floor(own / 2) }, (_, i) => protection(i * HIDDEN_STEP));
  return [roles, reading(BENCH), ...teams, ...hidden].join("\n");
}

/** Returns the policy that lets a group read the namespace of its name. */
function reading(name: string): string {
  return `@id("${name} reads its namespace")
permit (principal in Group::"${name}", action in [Action::"list", Action::"describe", Action::"read"], resource in Namespace::"${name}");`;
}

function protection(number: number): string {
  return `@id("${tableName(number)} is protected")
forbid (principal, action, resource == Table::"${BENCH}$${tableName(number)}") unless { principal in Role::"owner" };`;
}
