import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { fieldsOf, type World } from "./world.ts";

/** Metadata of fields and of schemas. */
export function metadataTests(world: World): void {
  const fields = (id: string[], branch?: string) => fieldsOf(world, id, branch);

  describe("metadata", () => {
    const ofFields = (id: string[], ...updates: object[]) =>
      world.client.updateFieldMetadata({ id, updates });

    test("of fields is merged, replaced and removed", async () => {
      const id = await world.table();
      const first = await ofFields(
        id,
        { path: "id", metadata: { a: value("1"), b: value("2") } },
        { path: "name", metadata: { c: value("3") } },
      );
      assert.equal(first.version, 2n);
      assert.deepEqual({ ...first.fields["id"]?.entries }, { a: "1", b: "2" });
      assert.deepEqual({ ...first.fields["name"]?.entries }, { c: "3" });
      const merged = await ofFields(id, { path: "id", metadata: { a: value(undefined), d: value("") } });
      assert.deepEqual({ ...merged.fields["id"]?.entries }, { b: "2", d: "" });
      const replaced = await ofFields(id, { path: "id", metadata: { e: value("5") }, replace: true });
      assert.deepEqual({ ...replaced.fields["id"]?.entries }, { e: "5" });
      assert.deepEqual({ ...(await fields(id))[0]?.metadata }, { e: "5" });
    });

    test("of fields must name existing columns, each once, and keeps the entries that the format needs", async () => {
      const id = await world.table();
      await refused("InvalidInput", ofFields(id));
      await refused("TableColumnNotFound", ofFields(id, { path: "nothing", metadata: { a: value("1") } }));
      await refused("InvalidInput", ofFields(id, { path: "id", metadata: {} }, { path: "id", metadata: {} }));
      await refused(
        "InvalidInput",
        ofFields(id, { path: "id", metadata: { "lance-schema:unenforced-primary-key": value("true") } }),
      );
      await world.client.alterTableAddColumns({ id, newColumns: [{ name: "twice", computed: "id * 2" }] });
      await refused(
        "InvalidInput",
        ofFields(id, { path: "twice", metadata: { "computed_column.expression": value("1") } }),
      );
      await refused("InvalidInput", ofFields(id, { path: "twice", metadata: {}, replace: true }));
    });

    test("has at most 10,000 entries in a schema and in a field", async () => {
      const id = await world.table();
      const keys = Array.from({ length: 10_000 }, (_, i) => `key${i}`);
      const metadata = Object.fromEntries(keys.map((key) => [key, ""]));
      const answer = await world.client.updateTableSchemaMetadata({ id, metadata });
      assert.equal(Object.keys(answer.metadata).length, 10_000);
      const another = { id, metadata: { another: "" } };
      await refused("InvalidInput", world.client.updateTableSchemaMetadata(another));
      await world.client.updateTableSchemaMetadata({ id, metadata: { key0: "changed" } });
      const ofField = Object.fromEntries([...keys, "another"].map((key) => [key, value("")]));
      await refused("InvalidInput", ofFields(id, { path: "id", metadata: ofField }));
    });

    test("of the schema is returned as a whole, and appears in descriptions of the table", async () => {
      const id = await world.table();
      const update = async (metadata: Record<string, string>) => ({
        ...(await world.client.updateTableSchemaMetadata({ id, metadata })).metadata,
      });
      assert.deepEqual(await update({ a: "1", b: "2" }), { a: "1", b: "2" });
      assert.deepEqual(await update({ b: "3", "ü ": "" }), { a: "1", b: "3", "ü ": "" });
      const { schema, version } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.deepEqual({ ...schema?.metadata }, { a: "1", b: "3", "ü ": "" });
      assert.equal(version, 3n);
      await world.client.insertIntoTable({ id }, personStream(people(2, 5)));
      assert.equal(await world.count(id), 7);
      await refused("TableNotFound", world.client.updateTableSchemaMetadata({ id: await world.declared() }));
    });
  });
}

/** Returns a value of metadata; without a text it is null. */
export function value(text: string | undefined): { value?: string } {
  return text === undefined ? {} : { value: text };
}
