import { LanceError } from "../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../namespace/lance-namespace.ts";
import type { CatalogDataContext, EngineContext, JobContext, PageContext } from "./context.ts";
import { createFunctionOperations } from "./functions/functions.ts";
import { createErrorOperations } from "./functions/row-errors.ts";
import { createSecretOperations } from "./functions/secrets.ts";
import { createJobExtensions } from "./jobs/jobs.ts";
import { createCloneOperations } from "./tables/clone.ts";

/** Reasons why services of LanceDB are not served, by the operation. */
const REFUSED = {
  manageFunctions: "functions can be created, described, listed and dropped, and nothing else",
  manageViews: "views can be created, described, listed and dropped, and nothing else",
  manageSecrets: "secrets can be created, altered, described, listed and dropped, and nothing else",
  manageAuthorization:
    "roles and policies of this server decide who may do what; they are files of its operator, which no call reads or changes",
  manageJobs: "the work of the engine has no step at which it could pause; a job can be cancelled",
} satisfies Partial<Record<keyof LanceDbExtensions, string>>;

/** Calls of LanceDB's remote clients beyond the contract; {@link REFUSED} has those without a meaning here. */
export function createLanceDbExtensions(
  context: CatalogDataContext & JobContext & PageContext & Pick<EngineContext, "cluster">,
): Partial<LanceDbExtensions> {
  const refuse = (reason: string) => () => Promise.reject(new LanceError("Unsupported", reason));
  return {
    manageFunctions: refuse(REFUSED.manageFunctions),
    manageViews: refuse(REFUSED.manageViews),
    manageSecrets: refuse(REFUSED.manageSecrets),
    manageAuthorization: refuse(REFUSED.manageAuthorization),
    manageJobs: refuse(REFUSED.manageJobs),
    ...createJobExtensions(context),
    ...createFunctionOperations(context),
    ...createSecretOperations(context),
    ...createErrorOperations(context),
    ...createCloneOperations(context),
  };
}
