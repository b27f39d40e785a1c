import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { MAX_IDENTIFIER_BYTES, MAX_IDENTIFIER_DEPTH } from "../../src/namespace/identifier.ts";
import { personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { ALL_CAPABILITIES, createWorld, type Fixture, type World } from "./world.ts";

const BAD_NAMES: readonly string[] = [
  "",
  " ",
  " a",
  "a ",
  ".",
  "..",
  "...",
  "%2e%2e",
  "..;a",
  "a%2f..",
  "a/b",
  "a%2fb",
  "%5Ca",
  "../a",
  "a\\b",
  "a$b",
  "a'b",
  "a*b",
  "a?b",
  "$",
  "a\nb",
  "a\u0000b",
  "a\u007fb",
  "a\u2028b",
  "x".repeat(MAX_IDENTIFIER_BYTES + 1),
];

const GOOD_NAMES: readonly string[] = [
  "a",
  "A",
  "0",
  "_",
  "-",
  ".a",
  "a.",
  "a..b",
  "a.lance",
  "a_b-c.d",
  "x".repeat(100),
];

/** Names that the specification lacks, which catalogs share with other writers. */
const UNICODE_NAMES: readonly string[] = [
  "a b",
  "a+b",
  "a%b",
  "a%20b",
  "%",
  "é",
  "e\u0301",
  "日本",
  "\u{1f600}",
  "a:b",
  "a#b&c=d",
  '"<>|`^[]{}()!@,~;',
];

/** Checks that objects of any of the names are kept under them, in the root too. */
async function keepsNames(world: World, names: readonly string[]): Promise<void> {
  const parent = await world.namespace();
  for (const name of names) {
    await world.client.createNamespace({ id: [parent, name] });
    await world.client.createTable({ id: [parent, name, name] }, personStream([]));
    await world.client.createTable({ id: [`root-${name}`] }, personStream([]));
  }
  const { namespaces } = await world.client.listNamespaces({ id: [parent] });
  assert.deepEqual(namespaces.toSorted(), names.toSorted());
  for (const name of names) {
    assert.deepEqual((await world.client.listTables({ id: [parent, name] })).tables, [name]);
    assert.equal(await world.count([parent, name, name]), 0);
    assert.equal((await world.client.describeTable({ id: [`root-${name}`] })).table, `root-${name}`);
    await world.client.dropTable({ id: [`root-${name}`] });
  }
}

/** Names beyond the specification, in a catalog that allows them. */
export function unicodeNameTests(title: string, open: () => Promise<Fixture>): void {
  describe(`names of all scripts, on ${title}`, () => {
    const world = createWorld(open, ALL_CAPABILITIES);
    test("are kept literally, in the root too", () => keepsNames(world, [...GOOD_NAMES, ...UNICODE_NAMES]));
  });
}

/** Names and identifiers of objects. */
export function identifierTests(world: World): void {
  describe("identifiers", () => {
    test("an invalid name is refused by every operation that creates an object", async () => {
      const parent = await world.namespace();
      for (const name of BAD_NAMES) {
        const id = [parent, name];
        const attempts = {
          createNamespace: () => world.client.createNamespace({ id }),
          declareTable: () => world.client.declareTable({ id }),
          registerTable: () => world.client.registerTable({ id, location: "x.lance" }),
          createTable: () => world.client.createTable({ id }, personStream([])),
        };
        for (const [what, attempt] of Object.entries(attempts)) {
          await refused("InvalidInput", attempt()).catch((error: Error) =>
            assert.fail(`${what} ${JSON.stringify(name.slice(0, 40))}: ${error.message}`),
          );
        }
      }
      assert.deepEqual((await world.client.listTables({ id: [parent] })).tables, []);
      assert.deepEqual((await world.client.listNamespaces({ id: [parent] })).namespaces, []);
    });

    test("every name of the specification is kept literally, in the root too", () =>
      keepsNames(world, GOOD_NAMES));

    test("a name with other characters is refused for a new object, and the refusal names the option", async () => {
      const parent = await world.namespace();
      const source = await world.table();
      for (const name of UNICODE_NAMES) {
        const id = [parent, name];
        const attempts = [
          () => world.client.createNamespace({ id }),
          () => world.client.declareTable({ id }),
          () => world.client.registerTable({ id, location: "x.lance" }),
          () => world.client.createTable({ id }, personStream([])),
          () => world.client.renameTable({ id: source, newTableName: name }),
          () =>
            world.client.batchCommitTables({
              operations: [{ operation: { case: "declareTable", value: { id } } }],
            }),
        ];
        for (const attempt of attempts) {
          const error = await refused("InvalidInput", attempt());
          assert.match(error.message, /--names unicode/);
        }
      }
      assert.deepEqual((await world.client.listTables({ id: [parent] })).tables, []);
      assert.deepEqual((await world.client.listNamespaces({ id: [parent] })).namespaces, []);
    });

    test("names differ by case and by every character", async () => {
      const parent = await world.namespace();
      for (const name of ["a", "A", "a.", "a-", "a_"]) {
        await world.client.createNamespace({ id: [parent, name], properties: { name } });
      }
      for (const name of ["a", "A", "a.", "a-", "a_"]) {
        const { properties } = await world.client.describeNamespace({ id: [parent, name] });
        assert.deepEqual(properties, { name });
      }
    });

    test("the string form is split at any delimiter", async () => {
      const parent = await world.namespace();
      await world.client.createNamespace({ id: [parent, "x.y"] });
      for (const [delimiter, identifier] of [
        [undefined, `${parent}$x.y`],
        ["$", `${parent}$x.y`],
        ["/", `${parent}/x.y`],
        ["::", `${parent}::x.y`],
        ["$$", `${parent}$$x.y`],
      ] as const) {
        await world.client.namespaceExists({ identifier, ...(delimiter && { delimiter }) });
      }
      await refused(
        "NamespaceNotFound",
        world.client.namespaceExists({ identifier: `${parent}.x.y`, delimiter: "." }),
      );
      await world.client.createNamespace({ identifier: `${parent}.z`, delimiter: "." });
      await world.client.namespaceExists({ id: [parent, "z"] });
    });

    test("the root is written as the delimiter, as an empty list or not at all", async () => {
      for (const init of [
        {},
        { id: [] },
        { identifier: "$" },
        { identifier: "/", delimiter: "/" },
        { identifier: "::", delimiter: "::" },
      ]) {
        assert.deepEqual((await world.client.describeNamespace(init)).properties, {});
      }
    });

    test("a string form with an empty name is refused", async () => {
      const parent = await world.namespace();
      await world.client.createNamespace({ id: [parent, "a"] });
      for (const identifier of [`${parent}$$a`, `$${parent}`, `${parent}$`, "$$", `${parent}$a$$`]) {
        await refused("InvalidInput", world.client.namespaceExists({ identifier }));
        await refused("InvalidInput", world.client.createNamespace({ identifier }));
      }
    });

    test("list form and string form must agree", async () => {
      const id = await world.table();
      const identifier = id.join("$");
      await world.client.tableExists({ id, identifier });
      await world.client.tableExists({ id, identifier: id.join("/"), delimiter: "/" });
      const other = await world.table();
      for (const wrong of [other, id.slice(0, 1), [...id, "more"], [...id].reverse(), [identifier]]) {
        await refused("InvalidInput", world.client.tableExists({ id: wrong, identifier }));
        await refused("InvalidInput", world.client.dropTable({ id: wrong, identifier }));
      }
      await world.client.tableExists({ id });
    });

    test("a transaction is one of a table", async () => {
      await refused("InvalidInput", world.client.describeTransaction({ id: ["2"] }));
    });

    test("an identifier that is too long or too deep is refused", async () => {
      const deep = Array.from({ length: MAX_IDENTIFIER_DEPTH + 1 }, () => "a");
      await refused("InvalidInput", world.client.createNamespace({ id: deep }));
      const long = ["x".repeat(MAX_IDENTIFIER_BYTES - 1), "yy"];
      await refused("InvalidInput", world.client.createNamespace({ id: long }));
    });

    test("the longest identifier works", async () => {
      const parent = await world.namespace();
      const id = [parent, "t".repeat(MAX_IDENTIFIER_BYTES - parent.length - 1)];
      await world.client.createTable({ id }, personStream([]));
      assert.equal(await world.count(id), 0);
      await world.client.dropTable({ id });
    });
  });
}
