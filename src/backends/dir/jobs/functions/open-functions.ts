import { parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, type ObjectStore } from "../../format/storage.ts";
import { createPlacedFiles, type GoneFile, type Homes, keyOfName } from "./placed-files.ts";
import { createFunctionRecords, type FunctionRecords } from "./records.ts";
import { createRowErrors, type RowErrors } from "./row-errors.ts";
import { createSealedSecrets, type SealedSecrets, type StoredSecret } from "./sealed-secrets.ts";

/** How functions are kept. */
export interface FunctionsKey {
  /** Secret of which the key of the secrets is made. Default: no secrets are kept. */
  readonly key?: string | undefined;
}

/** Functions, secrets, failed rows and the functions of columns that a catalog keeps. */
export interface StoredFunctions {
  readonly records: FunctionRecords;
  readonly secrets: SealedSecrets | undefined;
  readonly errors: RowErrors;
  readonly columns: ColumnBindings;
  readonly contents: NamespaceContents;
}

/** A column that an owner has added with a function. */
export interface BoundColumn {
  /** Of the table, relative to the base. */
  readonly location: string;
  /** The name of the column. */
  readonly column: string;
  /** Value of its metadata. */
  readonly binding: string;
}

/**
 * The functions of columns, as owners have chosen them, outside of the tables. The metadata of a column says the same, and can be changed by
 * everybody who may write the table.
 */
export interface ColumnBindings {
  /** Records the function of a column, in place of an earlier column of the name. */
  put(column: BoundColumn): Promise<void>;
  /** Returns what an owner has chosen for a column of a table. */
  get(location: string, column: string): Promise<string | undefined>;
}

/** Functions and secrets as contents of namespaces, also without the key of the secrets. */
export interface NamespaceContents {
  /** Whether some homes have a function or a secret. */
  areIn(homes: ReadonlySet<string>): Promise<boolean>;
  /** Finds what belongs to namespaces that are gone. */
  findGone(): Promise<readonly GoneFile[]>;
}

/** The catalog of functions. */
export interface FunctionsPlace {
  readonly store: ObjectStore;
  /** The base of the catalog, as an object key. */
  readonly base: string;
  readonly homes: Homes;
}

/** Directory of functions in the base of a catalog; implementations of the public format ignore it. */
const FUNCTIONS_DIRECTORY = ".functions";

/** Opens what a catalog keeps about functions, beside its tables. It writes nothing before the first function. */
export function openFunctions(
  { store, base, homes }: FunctionsPlace,
  { key }: FunctionsKey,
): StoredFunctions {
  const directory = keyIn(base, FUNCTIONS_DIRECTORY);
  const records = createFunctionRecords(store, directory, homes);
  const secrets = createPlacedFiles<StoredSecret>(store, keyIn(directory, "secrets"), homes);
  return {
    records,
    secrets:
      key === undefined
        ? undefined
        : createSealedSecrets(store, secrets, homes, { key, catalog: store.uriOf(base) }),
    errors: createRowErrors(store, keyIn(directory, "errors")),
    columns: createColumnBindings(store, keyIn(directory, "columns")),
    contents: {
      async areIn(wanted) {
        const found = [...(await records.names()), ...(await secrets.all())];
        return found.some(({ home }) => wanted.has(home));
      },
      async findGone() {
        const gone = await homes.gone(await secrets.all());
        const keys = gone.map((place) => secrets.keyOf(place));
        return [
          ...keys.map((each) => ({ key: each, remove: () => store.delete(each) })),
          ...(await records.findGone()),
        ];
      },
    },
  };
}

/** Opens the functions of columns in a directory, given as an object key. */
function createColumnBindings(store: ObjectStore, directory: string): ColumnBindings {
  const keyOf = (location: string, column: string) => keyIn(directory, keyOfName([location, column]));
  return {
    async put(bound) {
      await store.put(keyOf(bound.location, bound.column), Buffer.from(JSON.stringify(bound)));
    },
    async get(location, column) {
      const key = keyOf(location, column);
      const bytes = await store.get(key);
      return bytes && (parseJsonFile(key, bytes) as unknown as BoundColumn).binding;
    },
  };
}
