import type { Call } from "../../../namespace/call/call.ts";
import { EXPIRY_OPTION, inEverySpelling } from "../../../namespace/credential-options.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { type Identifier, sameIdentifier } from "../../../namespace/identifier.ts";
import { putNewest } from "../../../runtime/collections.ts";
import { createFacts, listIn, objectIn, objectsIn, propertiesIn, textIn } from "../base/answers.ts";
import type { Catalog, CatalogTable, PageRequest, Properties } from "../base/catalog.ts";
import { shown } from "../base/checks.ts";
import type { Json, JsonClient } from "../base/json-client.ts";

/** Differences between the catalogs that speak Iceberg's REST API for namespaces and have generic tables for other formats. */
export interface IcebergDialect {
  readonly name: string;
  /** Returns the path of the warehouse in Iceberg's API, for example `/catalog/v1/main`. */
  namespaces(call: Call): Promise<string>;
  /** Returns the path of the warehouse in the API of generic tables. */
  tables(call: Call): Promise<string>;
  /** Header that asks for credentials, with its value. */
  readonly delegation: Readonly<Record<string, string>>;
  /** Field of a description that has the credentials. */
  readonly credentials: string;
  /** Parameter of a deletion that says whether the catalog deletes the files, too. Default: it leaves them. */
  readonly purges?: string;
  /** Whether names may differ from their canonical form in the case of letters. */
  readonly foldsNames: boolean;
  /** Path of the renaming below that of the warehouse. Default: the catalog cannot rename. */
  readonly rename?: string;
  /** Path of a request that a working server answers. */
  readonly readiness: string;
}

/** Format of generic tables that are Lance tables, in lower case. */
const FORMAT = "lance";

/** Property that other implementations set on each Lance table. */
const MARKS = { table_type: FORMAT };

/** Joins the names of a namespace in a path or a query, as Iceberg's API specifies. */
const SEPARATOR = "\u001f";

const facts = createFacts([
  [[404], /NoSuch(?:Namespace|Warehouse|Catalog)|NamespaceNotFound/, "NamespaceNotFound"],
  [[404], /NoSuch(?:Generic)?Tab(?:le|ular)|TableNotFound/, "TableNotFound"],
  [[400, 409], /NamespaceNotEmpty|not empty/i, "NamespaceNotEmpty"],
  [[409], /CommitFailed|ConcurrentModification/, "ConcurrentModification"],
  [[419], /(?:)/, "Unauthenticated"],
]);

/** Creates the catalog of a warehouse. */
export function createIcebergCatalog(client: JsonClient, dialect: IcebergDialect): Catalog {
  const spellings = createSpellings();
  const { purges, rename } = dialect;

  const namespacePath = (base: string, id: Identifier) =>
    `${base}/namespaces/${encodeURIComponent(id.join(SEPARATOR))}`;

  async function tablesPath(id: Identifier, call: Call): Promise<string> {
    return `${namespacePath(await dialect.tables(call), id)}/generic-tables`;
  }

  async function tablePath(id: Identifier, call: Call): Promise<string> {
    return `${await tablesPath(id.slice(0, -1), call)}/${encodeURIComponent(id.at(-1) ?? "")}`;
  }

  async function describeNamespace(id: Identifier, call: Call) {
    const path = namespacePath(await dialect.namespaces(call), id);
    const answer = await client.send({ method: "GET", path, facts: facts("namespace") }, call);
    if (!sameIdentifier(namesIn(answer), id)) throw missingNamespace(id);
    spellings.confirm(id);
    const properties = propertiesIn(answer, "properties");
    return { properties, location: properties["location"] };
  }

  /** Refuses a namespace that the catalog would find under another spelling, which policies do not know. */
  async function confirm(namespace: Identifier, call: Call): Promise<void> {
    if (dialect.foldsNames && !spellings.isConfirmed(namespace)) await describeNamespace(namespace, call);
  }

  function tableOf(answer: Json, id: Identifier): CatalogTable {
    const table = objectIn(answer, "table") ?? {};
    if (textIn(table, "name") !== id.at(-1))
      throw new LanceError("TableNotFound", `there is no table ${shown(id)}`);
    if (textIn(table, "format")?.toLowerCase() !== FORMAT)
      throw new LanceError("InvalidInput", `${shown(id)} is not a Lance table`);
    const location = textIn(table, "base-location");
    const configs = objectsIn(answer, dialect.credentials).map((each): PrefixedConfig => {
      return { prefix: textIn(each, "prefix") ?? "", config: propertiesIn(each, "config") };
    });
    const storageOptions =
      location === undefined ? {} : icebergOptions(location, configs, propertiesIn(answer, "config"));
    return { location, properties: propertiesIn(table, "properties"), storageOptions };
  }

  async function remove(id: Identifier, purge: boolean, call: Call): Promise<void> {
    const path = await tablePath(id, call);
    const query = purges === undefined ? {} : { [purges]: String(purge) };
    await client.send({ method: "DELETE", path, query, facts: facts("table") }, call);
  }

  return {
    name: dialect.name,
    vends: true,
    depths: [1, Number.POSITIVE_INFINITY],
    tableDepths: [1, Number.POSITIVE_INFINITY],
    marks: MARKS,
    refuseName: (name) => (/\p{Cc}/u.test(name) ? "contains a control character" : undefined),

    async listNamespaces(parent, page, call) {
      const path = `${await dialect.namespaces(call)}/namespaces`;
      const query = { ...pageOf(page), parent: parent.length === 0 ? undefined : parent.join(SEPARATOR) };
      const answer = await client.send({ method: "GET", path, query, facts: facts("namespace") }, call);
      const names = listIn(answer, "namespaces")
        .filter((id): id is string[] => Array.isArray(id) && id.every((name) => typeof name === "string"))
        .filter((id) => id.length === parent.length + 1 && sameIdentifier(id.slice(0, -1), parent))
        .map((id) => id.at(-1) as string);
      // A catalog that folds names lists the children of another spelling, all of which are dropped.
      if (parent.length > 0 && names.length === 0) await describeNamespace(parent, call);
      return { names, next: textIn(answer, "next-page-token") };
    },

    describeNamespace,

    async createNamespace(id, properties, call) {
      const path = `${await dialect.namespaces(call)}/namespaces`;
      const body = { namespace: id, properties };
      const answer = await client.send({ method: "POST", path, body, facts: facts("namespace") }, call);
      return propertiesIn(answer, "properties");
    },

    async dropNamespace(id, call) {
      const path = namespacePath(await dialect.namespaces(call), id);
      await client.send({ method: "DELETE", path, facts: facts("namespace") }, call);
    },

    async listTables(id, page, call) {
      await confirm(id, call);
      const request = { method: "GET", path: await tablesPath(id, call), query: pageOf(page) } as const;
      const answer = await client.send({ ...request, facts: facts("namespace") }, call);
      const names = objectsIn(answer, "identifiers")
        .filter((each) => sameIdentifier(namesIn(each), id))
        .filter((each) => (textIn(each, "format") ?? FORMAT).toLowerCase() === FORMAT)
        .flatMap((each) => textIn(each, "name") ?? []);
      return { names, next: textIn(answer, "next-page-token") };
    },

    async describeTable(id, vends, call) {
      await confirm(id.slice(0, -1), call);
      const request = { method: "GET", path: await tablePath(id, call), facts: facts("table") } as const;
      if (!vends) return tableOf(await client.send(request, call), id);
      try {
        return tableOf(await client.send({ ...request, headers: dialect.delegation }, call), id);
      } catch (error) {
        // A catalog that cannot hand out credentials for a table may refuse to describe it with them.
        if (!(error instanceof LanceError) || !NOT_VENDED.has(error.kind)) throw error;
        return tableOf(await client.send(request, call), id);
      }
    },

    async createTable(id, { location, properties }, call) {
      const path = await tablesPath(id.slice(0, -1), call);
      const body = { name: id.at(-1), format: FORMAT, "base-location": location, properties };
      return tableOf(await client.send({ method: "POST", path, body, facts: facts("table") }, call), id);
    },

    removeTable: (id, call) => remove(id, false, call),
    ...(purges !== undefined && {
      dropTable: (id: Identifier, call: Call) => remove(id, true, call),
    }),

    ...(rename !== undefined && {
      async renameTable(id: Identifier, to: Identifier, call: Call) {
        const path = `${await dialect.tables(call)}${rename}`;
        const body = { source: partsOf(id), destination: partsOf(to) };
        await client.send({ method: "POST", path, body, facts: facts("table") }, call);
      },
    }),

    ready: () => client.ready(dialect.readiness),
    close: () => client.close(),
  };
}

/** Errors by which a catalog says that it has no credentials for a table, which is not that the caller may have none. */
const NOT_VENDED: ReadonlySet<string> = new Set(["InvalidInput", "Unsupported"]);

function partsOf(id: Identifier) {
  return { namespace: id.slice(0, -1), name: id.at(-1) };
}

/** Servers page only for clients that send a token, which is empty for the first page. */
function pageOf({ token, size }: PageRequest) {
  if (size === undefined) return { pageToken: token };
  return { pageToken: token ?? "", pageSize: String(size) };
}

function namesIn(answer: Json): Identifier {
  return listIn(answer, "namespace").map((name) => String(name));
}

function missingNamespace(id: Identifier): LanceError {
  return new LanceError("NamespaceNotFound", `there is no namespace ${shown(id)}`);
}

/** Names of Iceberg's REST API, and the options that they become. */
const ICEBERG: Readonly<Record<string, string>> = {
  "s3.access-key-id": "aws_access_key_id",
  "s3.secret-access-key": "aws_secret_access_key",
  "s3.session-token": "aws_session_token",
  "s3.session-token-expires-at-ms": EXPIRY_OPTION,
  "s3.endpoint": "aws_endpoint",
  "s3.region": "aws_region",
  "s3.client.region": "aws_region",
  "client.region": "aws_region",
  "gcs.oauth2.token": "google_storage_token",
  "gcs.oauth2.token-expires-at": EXPIRY_OPTION,
  "adls.account-name": "azure_storage_account_name",
};

/** Options whose name ends with the host of the account. */
const OF_HOST: readonly (readonly [prefix: string, name: string])[] = [
  ["adls.sas-token.", "azure_storage_sas_token"],
  ["adls.sas-token-expires-at-ms.", EXPIRY_OPTION],
];

/** A part of the configuration that a catalog of Iceberg's family returns. */
interface PrefixedConfig {
  /** Location below which it counts. */
  readonly prefix: string;
  readonly config: Properties;
}

/**
 * Returns the storage options of a table from the configurations that a catalog returns: that of the longest prefix of the
 * location. Configurations for other places are left out, and so are unknown settings.
 */
function icebergOptions(
  location: string,
  configs: readonly PrefixedConfig[],
  shared: Properties = {},
): Properties {
  const [best] = configs
    .filter(({ prefix }) => isBelow(location, prefix))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...shared, ...best?.config })) {
    const known = ICEBERG[name];
    if (known !== undefined) options[known] = value;
    for (const [prefix, own] of OF_HOST) {
      if (!name.startsWith(prefix)) continue;
      options[own] = value;
      options["azure_storage_account_name"] ??= name.slice(prefix.length).split(".", 1)[0] as string;
    }
    if (name === "s3.path-style-access")
      options["aws_virtual_hosted_style_request"] = String(value !== "true");
    if (name === "s3.endpoint" && value.startsWith("http://")) options["allow_http"] = "true";
  }
  return inEverySpelling(options);
}

/** Whether a location is in a place, and not merely spelled alike. */
function isBelow(location: string, prefix: string): boolean {
  if (!location.startsWith(prefix)) return false;
  return prefix.endsWith("/") || location.length === prefix.length || location[prefix.length] === "/";
}

/** How long a spelling counts as the canonical one, in milliseconds. */
const MEMORY_MS = 60_000;
const MAX_SPELLINGS = 10_000;

/** Remembers which spellings of namespaces are the catalog's own; only the form of names is kept, for all callers. */
interface Spellings {
  confirm(id: Identifier): void;
  isConfirmed(id: Identifier): boolean;
}

/** Creates an empty memory. */
function createSpellings(now: () => number = Date.now): Spellings {
  const known = new Map<string, number>();
  const keyOf = (id: Identifier) => id.join("$");
  return {
    confirm: (id) => void putNewest(known, keyOf(id), now() + MEMORY_MS, MAX_SPELLINGS),
    isConfirmed: (id) => (known.get(keyOf(id)) ?? 0) > now(),
  };
}
