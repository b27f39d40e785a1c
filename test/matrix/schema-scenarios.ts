import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Scenario, text } from "./scenario.ts";
import { fresh, MISSING_BRANCH } from "./tables.ts";

const stringValue = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const int64 = create(ValueSchema, {
  kind: { case: "structValue", value: { fields: { type: stringValue("int64") } } },
});

/** Operations on columns and metadata. */
export const SCHEMA_SCENARIOS: readonly Scenario[] = [
  {
    operation: "alterTableAddColumns",
    name: "with expressions and nulls",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "added");
      const newColumns = [
        { name: "label", expression: `concat(name, '${text.replaceAll("'", "''")}')` },
        { name: "empty", expression: "cast(null as double)" },
      ];
      const answer = await client.alterTableAddColumns({ id, newColumns });
      return [answer, (await client.describeTable({ id, loadDetailedMetadata: true })).schema];
    },
  },
  {
    operation: "alterTableAddColumns",
    name: "of a name that is taken",
    fails: "TableSchemaValidationError",
    run: (client, ns) =>
      client.alterTableAddColumns({ id: [ns, "t"], newColumns: [{ name: "name", expression: "1" }] }),
  },
  {
    operation: "alterTableAddColumns",
    name: "of a function",
    fails: "Unsupported",
    run: (client, ns) =>
      client.alterTableAddColumns({ id: [ns, "t"], newColumns: [{ name: "x", virtualColumn: {} }] }),
  },
  {
    operation: "alterTableAlterColumns",
    name: "with all of it",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "altered");
      const alterations = [
        { path: "id", rename: "number", dataType: int64 },
        { path: "name", dataType: stringValue("large_utf8") },
        { path: "vector", nullable: true },
      ];
      const answer = await client.alterTableAlterColumns({ id, alterations });
      return [answer, (await client.describeTable({ id, loadDetailedMetadata: true })).schema];
    },
  },
  {
    operation: "alterTableAlterColumns",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) =>
      client.alterTableAlterColumns({ id: [ns, "t"], alterations: [{ path: "nothing", nullable: true }] }),
  },
  {
    operation: "alterTableDropColumns",
    name: "of two",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "dropped");
      return client.alterTableDropColumns({ id, columns: ["name", "vector"] });
    },
  },
  {
    operation: "alterTableDropColumns",
    name: "of a missing branch",
    fails: "TableBranchNotFound",
    run: (client, ns) => client.alterTableDropColumns({ id: [ns, "t"], columns: ["id"], ...MISSING_BRANCH }),
  },
  {
    operation: "updateFieldMetadata",
    name: "with entries that come, change and go",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "fields");
      const first = { path: "id", metadata: { a: { value: text }, b: { value: "" } } };
      const second = { path: "id", metadata: { a: {}, c: { value: "3" } } };
      const third = { path: "name", metadata: { d: { value: "4" } }, replace: true };
      const before = await client.updateFieldMetadata({ id, updates: [first] });
      return [before, await client.updateFieldMetadata({ id, updates: [second, third] })];
    },
  },
  {
    operation: "updateFieldMetadata",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) =>
      client.updateFieldMetadata({ id: [ns, "t"], updates: [{ path: "nothing", metadata: {} }] }),
  },
  {
    operation: "updateTableSchemaMetadata",
    name: "twice",
    run: async (client, ns) => {
      const id = await fresh(client, ns, "described");
      await client.updateTableSchemaMetadata({ id, metadata: { a: "1" } });
      return (await client.updateTableSchemaMetadata({ id, metadata: { b: text } })).metadata;
    },
  },
  {
    operation: "updateTableSchemaMetadata",
    name: "of a missing branch",
    fails: "TableBranchNotFound",
    run: (client, ns) =>
      client.updateTableSchemaMetadata({ id: [ns, "t"], metadata: { a: "1" }, ...MISSING_BRANCH }),
  },
];
