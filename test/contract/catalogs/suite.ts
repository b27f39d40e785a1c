import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { ROW_OPERATIONS } from "../../../src/backends/composed/row-operations.ts";
import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
  DropNamespaceMode,
} from "../../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { RegisterTableMode } from "../../../src/gen/lance/namespace/v1/table_pb.ts";
import type { Operation } from "../../../src/namespace/lance-namespace.ts";
import { people, personStream } from "../../support/arrow.ts";
import type { LanceClient } from "../../support/client.ts";
import { refused } from "../../support/expect.ts";
import { ALL_OPERATIONS, callBare } from "../../support/operations.ts";
import { allPages, checkForeignToken } from "../world.ts";

/** Abilities of a foreign catalog; a suite tests that the gateway refuses those that are absent. */
export interface CatalogCapabilities {
  /** Whether namespaces can be in others of the same kind. */
  readonly nests: boolean;
  /** Whether it keeps properties of namespaces. */
  readonly keepsNamespaceProperties: boolean;
  /** Whether an entry can be pointed to another location in a single step. */
  readonly replaces: boolean;
  /** Whether an entry can be renamed in a single step. */
  readonly renames: boolean;
  /** Whether it deletes the files of a table with its entry. */
  readonly drops: boolean;
  /** Whether its listings do not tell the format of an entry, so that they have those of other formats, too. */
  readonly listsOtherFormats: boolean;
  /** Whether the gateway serves the rows of its tables. Default: it does not. */
  readonly servesRows?: boolean;
}

/** A client of a catalog behind the gateway. */
export interface CatalogFixture {
  readonly client: LanceClient;
  /** The namespace below which the tests make theirs; the root of Glue, a catalog of Unity. */
  readonly parent: readonly string[];
  /** Creates an entry of another format in a namespace, past the gateway. */
  createForeignTable(namespace: readonly string[], name: string): Promise<void>;
  /** Returns the locations whose files the catalog has deleted. Default: it deletes none. */
  purged?(): readonly string[];
  close(): Promise<void>;
}

/** Options of {@link catalogSuite}. */
export interface CatalogSuiteOptions {
  open(): Promise<CatalogFixture>;
  readonly capabilities: CatalogCapabilities;
}

/** The operations of every foreign catalog. */
const OPERATIONS: readonly Operation[] = [
  "createNamespace",
  "listNamespaces",
  "describeNamespace",
  "dropNamespace",
  "namespaceExists",
  "listTables",
  "listAllTables",
  "declareTable",
  "registerTable",
  "describeTable",
  "tableExists",
  "deregisterTable",
];

const LOCATION = "s3://lake/tables";

/** Runs the contract of a catalog without rows over a backend. */
export function catalogSuite(name: string, { open, capabilities }: CatalogSuiteOptions): void {
  describe(`the contract of catalogs, on ${name}`, () => {
    let fixture: CatalogFixture;
    let made = 0;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture?.close());

    const client = () => fixture.client;
    async function namespace(properties: Record<string, string> = {}): Promise<string[]> {
      made += 1;
      const id = [...fixture.parent, `ns${made}`];
      await client().createNamespace({ id, properties });
      return id;
    }
    const location = (id: readonly string[]) => `${LOCATION}/${id.join("/")}`;
    async function table(properties: Record<string, string> = {}): Promise<string[]> {
      const id = [...(await namespace()), "t"];
      await client().declareTable({ id, location: location(id), properties });
      return id;
    }

    test("a namespace is created, described, listed and dropped", async () => {
      const id = await namespace({ owner: "me" });
      await client().namespaceExists({ id });
      const { namespaces } = await client().listNamespaces({ id: [...fixture.parent] });
      assert.ok(namespaces.includes(id.at(-1) as string));
      const { properties } = await client().describeNamespace({ id });
      if (capabilities.keepsNamespaceProperties) assert.equal(properties["owner"], "me");
      await client().dropNamespace({ id });
      await refused("NamespaceNotFound", client().namespaceExists({ id }));
      await refused("NamespaceNotFound", client().dropNamespace({ id }));
      await client().dropNamespace({ id, mode: DropNamespaceMode.SKIP });
    });

    test("creating a namespace twice is refused, unless it may exist", async () => {
      const id = await namespace();
      await refused("NamespaceAlreadyExists", client().createNamespace({ id }));
      await client().createNamespace({ id, mode: CreateNamespaceMode.EXIST_OK });
      await refused("Unsupported", client().createNamespace({ id, mode: CreateNamespaceMode.OVERWRITE }));
    });

    test("the root exists, and cannot be created or dropped", async () => {
      await client().namespaceExists({ id: [] });
      await refused("NamespaceAlreadyExists", client().createNamespace({ id: [] }));
      await refused("InvalidInput", client().dropNamespace({ id: [] }));
      assert.deepEqual((await client().listTables({ id: [] })).tables, []);
    });

    test("a namespace with tables is not dropped, not even with cascade", async () => {
      const id = await table();
      const parent = id.slice(0, -1);
      await refused("NamespaceNotEmpty", client().dropNamespace({ id: parent }));
      const behavior = DropNamespaceBehavior.CASCADE;
      await refused("Unsupported", client().dropNamespace({ id: parent, behavior }));
      await client().tableExists({ id });
    });

    test("a missing namespace is NamespaceNotFound everywhere", async () => {
      const id = [...fixture.parent, "missing"];
      await refused("NamespaceNotFound", client().describeNamespace({ id }));
      await refused("NamespaceNotFound", client().listNamespaces({ id }));
      await refused("NamespaceNotFound", client().listTables({ id }));
      const of = [...id, "t"];
      await refused("NamespaceNotFound", client().declareTable({ id: of, location: location(of) }));
      await refused(["TableNotFound", "NamespaceNotFound"], client().describeTable({ id: of }));
      await refused(["TableNotFound", "NamespaceNotFound"], client().deregisterTable({ id: of }));
    });

    test("namespaces nest where the catalog has them, and only there", async () => {
      const id = await namespace();
      const child = [...id, "child"];
      if (!capabilities.nests) {
        await refused("InvalidInput", client().createNamespace({ id: child }));
        await refused("NamespaceNotFound", client().describeNamespace({ id: child }));
        assert.deepEqual((await client().listNamespaces({ id })).namespaces, []);
        return;
      }
      await client().createNamespace({ id: child });
      assert.deepEqual((await client().listNamespaces({ id })).namespaces, ["child"]);
      const of = [...child, "t"];
      await client().declareTable({ id: of, location: location(of) });
      assert.deepEqual((await client().listTables({ id: child })).tables, ["t"]);
      assert.deepEqual((await client().listTables({ id })).tables, []);
      await refused("NamespaceNotEmpty", client().dropNamespace({ id }));
    });

    test("a declared table is described with its location and properties, and keeps its mark", async () => {
      const id = await table({ owner: "me" });
      const described = await client().describeTable({ id, withTableUri: true });
      assert.equal(described.location, location(id));
      assert.equal(described.tableUri, location(id));
      assert.equal(described.table, "t");
      assert.deepEqual(described.namespace, id.slice(0, -1));
      assert.equal(described.properties["owner"], "me");
      assert.equal(described.properties["table_type"]?.toLowerCase(), "lance");
      assert.equal(described.managedVersioning, false);
      await client().tableExists({ id });
      assert.deepEqual((await client().listTables({ id: id.slice(0, -1) })).tables, ["t"]);
    });

    test("properties that contradict the marks of a Lance table are refused by name, and nothing is created", async () => {
      const id = await table();
      const { properties } = await client().describeTable({ id });
      assert.ok("table_type" in properties);
      for (const [name, value] of Object.entries(properties)) {
        const other = [...id.slice(0, -1), "other"];
        const to = { id: other, location: location(other) };
        for (const given of ["ICEBERG", "", `${value} `]) {
          const named = async (call: Promise<unknown>) =>
            assert.match((await refused("InvalidInput", call)).message, new RegExp(`property ${name} of `));
          const wrong = { ...to, properties: { [name]: given } };
          await named(client().declareTable(wrong));
          await named(client().registerTable(wrong));
          await named(client().registerTable({ ...wrong, id, mode: RegisterTableMode.OVERWRITE }));
        }
        await refused("TableNotFound", client().describeTable({ id: other }));
      }
      assert.deepEqual((await client().describeTable({ id })).properties, properties);
    });

    test("marks that a caller gives its table are kept as they are spelled", async () => {
      const id = await table({ table_type: "Lance", owner: "me" });
      const { properties } = await client().describeTable({ id });
      assert.equal(properties["table_type"], "Lance");
      assert.equal(properties["owner"], "me");
      assert.deepEqual((await client().listTables({ id: id.slice(0, -1) })).tables, ["t"]);
    });

    test("a name is used once", async () => {
      const id = await table();
      await refused("TableAlreadyExists", client().declareTable({ id, location: `${LOCATION}/other` }));
      await refused("TableAlreadyExists", client().registerTable({ id, location: `${LOCATION}/other` }));
      assert.equal((await client().describeTable({ id })).location, location(id));
    });

    test("a deregistered entry is gone, and can be registered again", async () => {
      const id = await table({ owner: "me" });
      const gone = await client().deregisterTable({ id });
      assert.deepEqual(gone.id, id);
      assert.equal(gone.location, location(id));
      assert.equal(gone.properties["owner"], "me");
      await refused("TableNotFound", client().describeTable({ id }));
      await refused("TableNotFound", client().tableExists({ id }));
      await refused("TableNotFound", client().deregisterTable({ id }));
      const again = await client().registerTable({ id, location: location(id) });
      assert.equal(again.location, location(id));
      await client().tableExists({ id });
    });

    test("a table is dropped where the catalog deletes its files, too", async () => {
      const id = await table({ owner: "me" });
      const dropped = client().dropTable({ id });
      if (!capabilities.drops) {
        await refused("Unsupported", dropped);
        await client().tableExists({ id });
        return;
      }
      assert.equal((await dropped).location, location(id));
      assert.deepEqual(fixture.purged?.(), [location(id)]);
      await refused("TableNotFound", client().dropTable({ id }));
    });

    test("a new table without a location has one that no table of its name has had", async (t) => {
      if (!capabilities.servesRows) return t.skip("the catalog has no place for tables");
      const id = [...(await namespace()), "t"];
      const rows = async (of: readonly string[]) => (await client().countTableRows({ id: [...of] })).count;
      await client().createTable({ id }, personStream(people(2)));
      const { location = "" } = await client().deregisterTable({ id });
      await client().createTable({ id }, personStream(people(3)));
      const old = [...id.slice(0, -1), "old"];
      await client().registerTable({ id: old, location });
      assert.deepEqual([await rows(id), await rows(old)], [3n, 2n]);
      if (!capabilities.renames) return;
      await client().renameTable({ id, newTableName: "renamed" });
      await client().createTable({ id }, personStream(people(1)));
      assert.deepEqual([await rows(id), await rows([...id.slice(0, -1), "renamed"])], [1n, 3n]);
    });

    test("mode Overwrite of a registration replaces the entry, where the catalog can do it in a step", async () => {
      const id = await table();
      const to = `${LOCATION}/moved`;
      const replaced = client().registerTable({ id, location: to, mode: RegisterTableMode.OVERWRITE });
      if (!capabilities.replaces) {
        await refused("Unsupported", replaced);
        return;
      }
      assert.equal((await replaced).location, to);
      assert.equal((await client().describeTable({ id })).location, to);
      const free = [...id.slice(0, -1), "free"];
      await client().registerTable({ id: free, location: to, mode: RegisterTableMode.OVERWRITE });
      await client().tableExists({ id: free });
    });

    test("a table is renamed where the catalog can do it in a step", async () => {
      const id = await table();
      const to = [...id.slice(0, -1), "renamed"];
      const renamed = client().renameTable({ id, newTableName: "renamed" });
      if (!capabilities.renames) {
        await refused("Unsupported", renamed);
        return;
      }
      await renamed;
      assert.equal((await client().describeTable({ id: to })).location, location(id));
      await refused("TableNotFound", client().describeTable({ id }));
      const other = [...(await namespace()), "t"];
      await client().declareTable({ id: other, location: location(other) });
      const taken = { id: to, newTableName: "t", newNamespaceId: other.slice(0, -1) };
      await refused("TableAlreadyExists", client().renameTable(taken));
    });

    test("an entry of another format is not described, deregistered or replaced, nor listed where the catalog tells formats", async () => {
      const parent = await namespace();
      await fixture.createForeignTable(parent, "foreign");
      const id = [...parent, "foreign"];
      const listed = capabilities.listsOtherFormats ? ["foreign"] : [];
      assert.deepEqual((await client().listTables({ id: parent })).tables, listed);
      await refused(["InvalidInput", "TableNotFound"], client().describeTable({ id }));
      await refused(["InvalidInput", "TableNotFound"], client().tableExists({ id }));
      await refused(["InvalidInput", "TableNotFound"], client().deregisterTable({ id }));
      await refused("TableAlreadyExists", client().declareTable({ id, location: location(id) }));
      const mode = RegisterTableMode.OVERWRITE;
      await refused(
        ["InvalidInput", "Unsupported"],
        client().registerTable({ id, location: location(id), mode }),
      );
      await refused("NamespaceNotEmpty", client().dropNamespace({ id: parent }));
    });

    test("pages of any size list every table and namespace once", async () => {
      const parent = await namespace();
      const names = ["b", "a", "c-1", "c_1", "d1", "e2"];
      for (const each of names) {
        const id = [...parent, each];
        await client().declareTable({ id, location: location(id) });
      }
      if (!capabilities.listsOtherFormats) await fixture.createForeignTable(parent, "b_foreign");
      const tables = async (asked: { limit: number; pageToken?: string }) => {
        const { tables: found, pageToken } = await client().listTables({ id: parent, ...asked });
        return { names: found, pageToken };
      };
      for (let limit = 1; limit <= names.length + 1; limit += 1) {
        const found = await pagesOf(tables, limit, names.length + 2);
        assert.deepEqual(found.toSorted(), names.toSorted(), `with pages of ${limit}`);
      }
      await checkForeignToken(names.length, tables);
      const above = async (asked: { limit: number; pageToken?: string }) => {
        const answer = await client().listNamespaces({ id: [...fixture.parent], ...asked });
        return { names: answer.namespaces, pageToken: answer.pageToken };
      };
      const all = (await above({ limit: 0 })).names;
      assert.deepEqual((await pagesOf(above, 2, all.length + 2)).toSorted(), all.toSorted());
    });

    test("the tables of all namespaces are listed, once each, by their identifiers", async () => {
      const first = await namespace();
      const second = await namespace();
      const inner = capabilities.nests ? [...first, "inner"] : await namespace();
      if (capabilities.nests) await client().createNamespace({ id: inner });
      const ids = [first, inner, second].flatMap((id) => [
        [...id, "b"],
        [...id, "a"],
      ]);
      for (const id of ids) await client().declareTable({ id, location: location(id) });
      const own = (names: readonly string[], delimiter: string) =>
        names.filter((name) =>
          [first, second, inner].some((id) => name.startsWith(id.join(delimiter) + delimiter)),
        );
      const { tables: all, pageToken } = await client().listAllTables();
      assert.ok(!pageToken);
      assert.deepEqual(own(all, "$").toSorted(), ids.map((id) => id.join("$")).toSorted());
      const { tables: spelled } = await client().listAllTables({ delimiter: "." });
      assert.deepEqual(own(spelled, ".").toSorted(), ids.map((id) => id.join(".")).toSorted());
      const pages = async (asked: { limit: number; pageToken?: string }) => {
        const answer = await client().listAllTables(asked);
        return { names: answer.tables, pageToken: answer.pageToken };
      };
      for (const limit of [1, 2, 3, all.length])
        assert.deepEqual(await pagesOf(pages, limit, all.length + 1), all, `with pages of ${limit}`);
      await checkForeignToken(all.length, pages);
      await refused("Unsupported", client().listAllTables({ includeDeclared: false }));
    });

    test("names and locations that lead elsewhere are refused", async () => {
      const parent = await namespace();
      for (const each of [
        "",
        "..",
        "/",
        "relative/x",
        "s3://lake/../other",
        "s3://lake/a?b",
        "s3://u:p@lake/a",
        "x\u0000",
      ]) {
        const id = [...parent, "escape"];
        await refused("InvalidInput", client().registerTable({ id, location: each }));
      }
      for (const each of ["a/b", "a\\b", "a\u001fb", "a\nb", "a?b", "a%2fb"]) {
        const id = [...parent, each];
        await refused("InvalidInput", client().declareTable({ id, location: `${LOCATION}/x` }));
        await refused(["InvalidInput", "TableNotFound"], client().describeTable({ id }));
        await refused(
          ["InvalidInput", "NamespaceNotFound"],
          client().describeNamespace({ id: [...fixture.parent, each] }),
        );
      }
      assert.deepEqual((await client().listTables({ id: parent })).tables, []);
    });

    test("properties beyond the bound are refused", async () => {
      const id = [...(await namespace()), "t"];
      const properties = { a: "x".repeat(64 * 1024) };
      await refused("InvalidInput", client().declareTable({ id, location: location(id), properties }));
    });

    test("details that only the files of a table have are Unsupported, with the option that serves them", async (t) => {
      if (capabilities.servesRows) return t.skip("the gateway reads the files");
      const id = await table();
      for (const asked of [
        { loadDetailedMetadata: true },
        { checkDeclared: true },
        { version: 1n },
        { tag: "x" },
      ]) {
        const error = await refused("Unsupported", client().describeTable({ id, ...asked }));
        assert.match(error.message, /--rows here/);
      }
      await refused("Unsupported", client().listTables({ id: id.slice(0, -1), includeDeclared: false }));
    });

    const has = new Set<Operation>([
      ...OPERATIONS,
      ...(capabilities.renames ? (["renameTable"] as const) : []),
      ...(capabilities.drops ? (["dropTable"] as const) : []),
      ...(capabilities.servesRows ? (["createTable", ...Object.keys(ROW_OPERATIONS)] as Operation[]) : []),
    ]);
    for (const operation of ALL_OPERATIONS.filter((each) => !has.has(each))) {
      test(`${operation} answers Unsupported`, async () => {
        const id = ["ns", "t"];
        const called =
          operation === "deleteFromTable"
            ? client().deleteFromTable({ id, predicate: "true" })
            : callBare(client(), operation, id);
        const error = await refused("Unsupported", called);
        const reason = capabilities.servesRows
          ? /with --rows here, .* and no other operations/
          : /no rows; with --rows here/;
        assert.match(error.message, reason);
      });
    }
  });
}

/** Follows the pages of a listing, the last of which may be empty. */
async function pagesOf(
  list: (asked: { limit: number; pageToken?: string }) => Promise<{
    readonly names: readonly string[];
    readonly pageToken: string | undefined;
  }>,
  limit: number,
  bound: number,
): Promise<string[]> {
  let last = { names: [] as readonly string[], pageToken: undefined as string | undefined };
  return allPages(
    async (pageToken) => {
      last = await list({ limit, ...(pageToken !== undefined && { pageToken }) });
      // A catalog learns only from an empty page that there is no more.
      return last.names.length === 0 ? { ...last, pageToken: undefined } : last;
    },
    limit,
    bound,
  );
}
