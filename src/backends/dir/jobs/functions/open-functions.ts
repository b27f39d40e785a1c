import { keyIn, type ObjectStore } from "../../format/storage.ts";
import { createFunctionRecords, type FunctionRecords } from "./records.ts";
import { createRowErrors, type RowErrors } from "./row-errors.ts";
import { createSealedSecrets, type SealedSecrets } from "./sealed-secrets.ts";

/** How functions are kept. */
export interface FunctionsKey {
  /** Secret of which the key of the secrets is made. Default: no secrets are kept. */
  readonly key?: string | undefined;
}

/** Functions, secrets and failed rows that a catalog keeps. */
export interface StoredFunctions {
  readonly records: FunctionRecords;
  readonly secrets: SealedSecrets | undefined;
  readonly errors: RowErrors;
}

/** Directory of functions in the base of a catalog; implementations of the public format ignore it. */
const FUNCTIONS_DIRECTORY = ".functions";

/** Opens what a catalog keeps about functions, beside its tables. It writes nothing before the first function. */
export function openFunctions(store: ObjectStore, base: string, { key }: FunctionsKey): StoredFunctions {
  const directory = keyIn(base, FUNCTIONS_DIRECTORY);
  return {
    records: createFunctionRecords(store, directory),
    secrets: key === undefined ? undefined : createSealedSecrets(store, keyIn(directory, "secrets"), key),
    errors: createRowErrors(store, keyIn(directory, "errors")),
  };
}
