import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";

/** Creates the error for rows of a table whose versions the upstream commits itself, and whose rows it does not serve. */
export function refuseManaged(id: Identifier): LanceError {
  return new LanceError(
    "Unsupported",
    `the upstream catalog commits the versions of ${JSON.stringify(joinIdentifier(id))} itself (managed versioning), and this gateway cannot do that for it; commit with CreateTableVersion`,
  );
}
