import type { Call } from "../../../namespace/call/call.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { StorageAccess } from "../../../namespace/lance-namespace.ts";

/** Properties of a namespace or a table. */
export type Properties = Readonly<Record<string, string>>;

/** A page of names that is requested from a catalog. */
export interface PageRequest {
  /** The catalog's own token, from the page before. Default: the first page. */
  readonly token: string | undefined;
  /** Number of names that the page should have. Default: the catalog's choice. */
  readonly size: number | undefined;
}

/** A page of names, in the catalog's order. */
export interface NamesPage {
  readonly names: readonly string[];
  /** The catalog's token of the next page. Default: there is none. */
  readonly next: string | undefined;
}

/** A Lance table as a catalog describes it. */
export interface CatalogTable {
  /** Location of its files; undefined if the entry has none. */
  readonly location: string | undefined;
  readonly properties: Properties;
  /** Credentials and settings of its storage, in the names of Lance's clients. Default: the catalog gives none. */
  readonly storageOptions?: Properties | undefined;
}

/** A namespace as a catalog describes it. */
export interface CatalogNamespace {
  readonly properties: Properties;
  /** Location below which the catalog expects the tables of the namespace. Default: the catalog names none. */
  readonly location?: string | undefined;
}

/** An entry to create in a catalog. */
export interface NewTable {
  readonly location: string;
  /** Properties, with the marks of the catalog. */
  readonly properties: Properties;
}

/**
 * A foreign catalog, reduced to what the Lance Namespace contract needs. An implementation knows the wire of its service;
 * `createCatalogBackend` knows the contract.
 *
 * Identifiers are checked before they arrive: they have the depth that the catalog allows, and names that it can keep. Every
 * function throws LanceError: NamespaceNotFound, TableNotFound, and the `…AlreadyExists` errors as the contract says.
 */
export interface Catalog {
  /** Name of the backend, for example `glue`. */
  readonly name: string;
  /** Smallest and largest number of names of a namespace that can be created; the root has none. */
  readonly depths: readonly [least: number, most: number];
  /** Smallest and largest number of names of the namespace of a table. */
  readonly tableDepths: readonly [least: number, most: number];
  /** Whether descriptions can have credentials. */
  readonly vends: boolean;
  /** Properties of every new entry, which mark it as a Lance table for this and other implementations; a call cannot give others. */
  readonly marks: Properties;
  /** Returns the reason why the catalog cannot keep a name, or would keep it as another one. Default: it keeps every name. */
  refuseName?(name: string): string | undefined;

  listNamespaces(parent: Identifier, page: PageRequest, call: Call): Promise<NamesPage>;
  describeNamespace(id: Identifier, call: Call): Promise<CatalogNamespace>;
  /** Returns the properties that the namespace has. */
  createNamespace(id: Identifier, properties: Properties, call: Call): Promise<Properties>;
  /** Removes a namespace that is empty. @throws LanceError NamespaceNotEmpty */
  dropNamespace(id: Identifier, call: Call): Promise<void>;
  /** Lists the Lance tables of a namespace; entries of other formats are left out. */
  listTables(namespace: Identifier, page: PageRequest, call: Call): Promise<NamesPage>;
  /**
   * Describes a table.
   *
   * @param vends whether credentials are wanted
   * @throws LanceError InvalidInput for an entry that is not a Lance table; PermissionDenied if the caller may have no credentials
   */
  describeTable(id: Identifier, vends: boolean, call: Call): Promise<CatalogTable>;
  /** Creates an entry without touching files. Credentials come with a description alone. */
  createTable(id: Identifier, table: NewTable, call: Call): Promise<CatalogTable>;
  /** Points an existing entry to another location, in a single step. Default: the catalog has no such operation. */
  replaceTable?(id: Identifier, table: NewTable, call: Call): Promise<CatalogTable>;
  /** Removes an entry without touching files. */
  removeTable(id: Identifier, call: Call): Promise<void>;
  /** Removes an entry and has the catalog delete the files of the table. Default: the catalog deletes no files. */
  dropTable?(id: Identifier, call: Call): Promise<void>;
  /** Renames an entry, in a single step. Default: the catalog has no such operation. */
  renameTable?(id: Identifier, to: Identifier, call: Call): Promise<void>;
  /** Whether the catalog answers now. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Options of `createCatalogBackend`. */
export interface CatalogBackendOptions {
  /** Where the catalog is, for people, without credentials. Default: it is not said. */
  readonly place?: string | undefined;
  /** The most that credentials in the catalog's answers allow. Default: the catalog hands out none. */
  readonly handsOut?: StorageAccess | undefined;
  /** Location below which tables are declared that are given none, and whose namespace has none. Default: these are refused. */
  readonly tableRoot?: string | undefined;
  /** Namespace of the catalog that is the root of the gateway's tree. Default: the root of the catalog. */
  readonly within?: Identifier | undefined;
  /** Storage options of every description, which the catalog's own override. Default: none. */
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
}
