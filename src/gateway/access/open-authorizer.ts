import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { Authorizer } from "../../namespace/authorizer.ts";
import type { OpaOptions } from "./open-opa.ts";

/** Options about what decides. */
type PolicyOptions = Pick<ServeOptions, "auth" | "policyDir" | "opaUrl"> & OpaOptions;

/** Counts a decision. */
type Count = (isAllowed: boolean) => void;

/**
 * Opens what decides about single objects; undefined if roles decide.
 *
 * @param count counts each decision. Default: nobody does.
 * @throws UsageError for options that contradict each other, and for wrong policies.
 */
export async function openAuthorizer(
  options: PolicyOptions,
  log: Logger,
  count: Count = () => {},
): Promise<Authorizer | undefined> {
  const { auth, policyDir: directory, opaUrl, opaTokenFile, opaCaFile } = options;
  if (directory !== undefined && opaUrl !== undefined)
    throw new UsageError("--policy-dir and --opa-url contradict each other: only one of them decides");
  if (opaUrl === undefined && (opaTokenFile ?? opaCaFile) !== undefined)
    throw new UsageError("--opa-token-file and --opa-ca-file need --opa-url beside them");
  if (opaUrl !== undefined) {
    requireCallers("--opa-url", auth);
    const { openOpa } = await import("./open-opa.ts");
    return counted(await openOpa(opaUrl, options, log), count);
  }
  if (directory === undefined) return undefined;
  requireCallers("--policy-dir", auth);
  const { openPolicyFolder } = await import("../../auth/cedar/policy-folder.ts");
  const policies = await openPolicyFolder({ directory, log }).catch((error: Error) => {
    throw new UsageError(`--policy-dir: ${error.message.replaceAll("\n", "; ")}`, { cause: error });
  });
  return counted(policies, count);
}

function requireCallers(flag: string, auth: ServeOptions["auth"]): void {
  if (auth.length === 0) throw new UsageError(`${flag} requires --auth, which says who calls`);
}

/** Returns an authorizer whose decisions are counted. */
function counted(authorizer: Authorizer, count: Count): Authorizer {
  const { allows, allowsEach } = authorizer;
  return {
    ...authorizer,
    allows(principal, access) {
      const decided = allows(principal, access);
      if (typeof decided === "boolean") count(decided);
      else void decided.then(count, () => {});
      return decided;
    },
    ...(allowsEach !== undefined && {
      async allowsEach(principal, accesses) {
        const decisions = await allowsEach(principal, accesses);
        for (const decision of decisions) count(decision);
        return decisions;
      },
    }),
  };
}
