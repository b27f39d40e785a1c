import type { Logger } from "pino";
import { openPolicyFolder } from "../auth/policies/policy-folder.ts";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import type { Authorizer } from "../namespace/authorizer.ts";

/**
 * Opens what decides about single objects; undefined if roles decide.
 *
 * @param count counts each decision. Default: nobody does.
 * @throws UsageError for options that contradict each other, and for wrong policies.
 */
export async function openAuthorizer(
  { auth, policyDir: directory }: Pick<ServeOptions, "auth" | "policyDir">,
  log: Logger,
  count: (isAllowed: boolean) => void = () => {},
): Promise<Authorizer | undefined> {
  if (directory === undefined) return undefined;
  if (auth.length === 0) throw new UsageError("--policy-dir needs --auth beside it, which says who calls");
  const policies = await openPolicyFolder({ directory, log }).catch((error: Error) => {
    throw new UsageError(`--policy-dir: ${error.message.replaceAll("\n", "; ")}`, { cause: error });
  });
  return {
    close: policies.close,
    allows(principal, access) {
      const decided = policies.allows(principal, access);
      if (typeof decided === "boolean") count(decided);
      else void decided.then(count, () => {});
      return decided;
    },
  };
}
