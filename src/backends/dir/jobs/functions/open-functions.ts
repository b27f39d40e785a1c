import { keyIn, type ObjectStore } from "../../format/storage.ts";
import { createPlacedFiles, type GoneFile, type Homes, type OnDamaged } from "./placed-files.ts";
import { createFunctionRecords, type FunctionRecords } from "./records.ts";
import { createRowErrors, type FailedRows, type RowErrors } from "./row-errors.ts";
import { createSealedSecrets, type SealedSecrets, type StoredSecret } from "./sealed-secrets.ts";
import { createTableFiles, type OfTable, type TableFiles } from "./table-files.ts";

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
  /** Forgets the failed rows of a table, and the functions of its columns. */
  forgetTable(location: string): Promise<void>;
  /** Finds the directories with failed rows and functions of columns of tables that are gone. */
  findOfGoneTables(
    isGone: (location: string) => Promise<boolean>,
    onDamaged: OnDamaged,
  ): AsyncGenerator<string>;
}

/** A column that an owner has added with a function. */
export interface BoundColumn extends OfTable {
  /** Its id in the table, which no later column gets. */
  readonly field: number;
  /** The name that it was added with. */
  readonly column: string;
  /** Value of its metadata. */
  readonly binding: string;
}

/**
 * The functions of columns, as owners have chosen them, outside of the tables. The metadata of a column says the same, and can be changed by
 * everybody who may write the table.
 */
export interface ColumnBindings {
  /** Records the function of a column. */
  put(column: BoundColumn): Promise<void>;
  /** Returns what an owner has chosen for a column of a table; undefined also under another name. */
  get(column: Omit<BoundColumn, "binding">): Promise<string | undefined>;
  /** Forgets a column that was dropped. */
  remove(location: string, field: number): Promise<void>;
}

/** Functions and secrets as contents of namespaces, also without the key of the secrets. */
export interface NamespaceContents {
  /** Whether some homes have a function or a secret. */
  areIn(homes: ReadonlySet<string>): Promise<boolean>;
  /** Finds what belongs to namespaces that are gone. Damaged files are passed on and stay. */
  findGone(onDamaged: OnDamaged): Promise<readonly GoneFile[]>;
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
  const errors = createTableFiles<FailedRows>(store, keyIn(directory, "errors"));
  const columns = createTableFiles<BoundColumn>(store, keyIn(directory, "columns"));
  return {
    records,
    secrets:
      key === undefined
        ? undefined
        : createSealedSecrets(store, secrets, homes, { key, catalog: store.uriOf(base) }),
    errors: createRowErrors(errors),
    columns: createColumnBindings(columns),
    async forgetTable(location) {
      await Promise.all([errors.removeAll(location), columns.removeAll(location)]);
    },
    async *findOfGoneTables(isGone, onDamaged) {
      yield* errors.findGone(isGone, onDamaged);
      yield* columns.findGone(isGone, onDamaged);
    },
    contents: {
      async areIn(wanted) {
        const found = [...(await records.names()), ...(await secrets.all())];
        return found.some(({ home }) => wanted.has(home));
      },
      async findGone(onDamaged) {
        const gone = await homes.gone(await secrets.all(onDamaged));
        const keys = gone.map((place) => secrets.keyOf(place));
        return [
          ...keys.map((each) => ({ key: each, remove: () => store.delete(each) })),
          ...(await records.findGone(onDamaged)),
        ];
      },
    },
  };
}

/** Keeps the functions of columns in the records about tables. */
function createColumnBindings(files: TableFiles<BoundColumn>): ColumnBindings {
  return {
    put: (bound) => files.put(String(bound.field), bound),
    async get({ location, field, column }) {
      const bound = await files.get(location, String(field));
      return bound?.column === column ? bound.binding : undefined;
    },
    remove: (location, field) => files.remove(location, String(field)),
  };
}
