import type { Connection, OpenTableOptions, Table } from "@lancedb/lancedb";
import { LanceError } from "../namespace/errors.ts";
import { refuseOptions } from "./caller.ts";
import type { LanceDbAccess } from "./connections/properties.ts";
import type {
  CreateTableRequest,
  CreateTableResponse,
  DropTableResponse,
  RenameTableResponse,
} from "./messages.ts";
import type { ArrowData } from "./rows/arrow-input.ts";
import type { CallOptions, Fields, Operations } from "./types.ts";

/** Loads `@lancedb/lancedb`, where available. Bundles for browsers do not contain this import. */
export type LoadLanceDb = () => Promise<typeof import("@lancedb/lancedb")>;

/** Location of a table. */
export interface TablePlace {
  /** Names of the namespaces that lead to the table. Default: the root. */
  readonly namespacePath?: readonly string[] | undefined;
}

/** Options of `createTable(name, data, options)`. */
export interface NewTableOptions
  extends TablePlace,
    CallOptions,
    Pick<Fields<CreateTableRequest>, "mode" | "properties" | "storageOptions"> {}

/** Options of `renameTable(name, newName, options)`. */
export interface RenameOptions extends TablePlace, CallOptions {
  /** Namespace to which the table moves; a table in a namespace cannot move into the root. Default: its current namespace. */
  readonly newNamespacePath?: readonly string[] | undefined;
}

/** Options of `openTable(name, options)`: the location, and those of `@lancedb/lancedb`. */
export interface OpenOptions extends TablePlace, Partial<OpenTableOptions> {}

/** Names of the options of `@lancedb/lancedb`, which itself ignores others. */
const OPEN_OPTIONS: ReadonlySet<string> = new Set([
  "branch",
  "version",
  "storageOptions",
  "indexCacheSize",
] satisfies (keyof OpenTableOptions)[]);

/**
 * Operations on tables in the manner of LanceDB's clients: by name, with the namespace as an option. Those that are
 * also operations of the API accept its request, too.
 */
export interface TableMethods {
  /** Creates a table from rows. */
  readonly createTable: Operations["createTable"] &
    ((name: string, data: ArrowData, options?: NewTableOptions) => Promise<CreateTableResponse>);
  /** Removes a table with its data. */
  readonly dropTable: Operations["dropTable"] &
    ((name: string, options?: TablePlace & CallOptions) => Promise<DropTableResponse>);
  /** Gives a table another name, another namespace or both. */
  readonly renameTable: Operations["renameTable"] &
    ((name: string, newName: string, options?: RenameOptions) => Promise<RenameTableResponse>);
  /**
   * Opens a table with `@lancedb/lancedb`, which must be installed, for everything that its tables support.
   *
   * @throws LanceError Unsupported, if the package is not installed or cannot reach this catalog.
   */
  readonly openTable: (name: string, options?: OpenOptions) => Promise<Table>;
}

/** Creates the methods; `close` releases what opened tables hold. */
export function createTableMethods(
  operations: Operations,
  implementation: string,
  access: LanceDbAccess | undefined,
  load: LoadLanceDb | undefined,
): { readonly methods: TableMethods; close(): Promise<void> } {
  let connection: Promise<Connection> | undefined;

  const methods = {
    createTable(first: string | object, data: ArrowData, options: NewTableOptions = {}) {
      if (typeof first !== "string") return operations.createTable(first, data, options);
      const { namespacePath = [], mode, properties, storageOptions, ...call } = options;
      const request = { id: [...namespacePath, first], mode, properties, storageOptions };
      return operations.createTable(request, data, call);
    },

    dropTable(first?: string | object, options: TablePlace & CallOptions = {}) {
      if (typeof first !== "string") return operations.dropTable(first, options);
      const { namespacePath = [], ...call } = options;
      return operations.dropTable({ id: [...namespacePath, first] }, call);
    },

    renameTable(first?: string | object, second?: string | CallOptions, options: RenameOptions = {}) {
      if (typeof first !== "string") return operations.renameTable(first, second as CallOptions);
      const { namespacePath = [], newNamespacePath = namespacePath, ...call } = options;
      if (newNamespacePath.length === 0 && namespacePath.length > 0)
        return Promise.reject(new LanceError("InvalidInput", "a rename cannot move a table into the root"));
      const request = {
        id: [...namespacePath, first],
        newTableName: second as string,
        newNamespaceId: newNamespacePath,
      };
      return operations.renameTable(request, call);
    },

    async openTable(name: string, { namespacePath = [], ...options }: OpenOptions = {}) {
      const others = Object.entries(options).filter(([option]) => !OPEN_OPTIONS.has(option));
      refuseOptions("openTable", Object.fromEntries(others));
      // The package's errors are only texts; this call reports a missing table by the error table.
      await operations.tableExists({ id: [...namespacePath, name] });
      connection ??= openLanceDb(implementation, access, load);
      connection.catch(() => {
        connection = undefined;
      });
      return await (await connection).openTable(name, [...namespacePath], options);
    },
  };

  return {
    methods,
    async close() {
      const opened = await connection?.catch(() => undefined);
      opened?.close();
      connection = undefined;
    },
  };
}

async function openLanceDb(
  implementation: string,
  access: LanceDbAccess | undefined,
  load: LoadLanceDb | undefined,
): Promise<Connection> {
  if (load === undefined)
    throw new LanceError("Unsupported", "@lancedb/lancedb is not available in this environment");
  if (access === undefined) {
    throw new LanceError("Unsupported", `"${implementation}" cannot open tables with @lancedb/lancedb`);
  }
  const lancedb = await load().catch((cause: Error) => {
    throw new LanceError("Unsupported", cause.message, { cause });
  });
  return await lancedb.connectNamespace(access.implementation, { ...access.properties });
}
