import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
  DropNamespaceMode,
} from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { RegisterTableMode } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import { type Scenario, text } from "./scenario.ts";

/** The operations on namespaces and on whole tables, with success and with failure. */
export const CATALOG_SCENARIOS: readonly Scenario[] = [
  {
    operation: "createNamespace",
    name: "with properties",
    run: (client, ns) => client.createNamespace({ id: [ns, "new"], properties: { owner: text, empty: "" } }),
  },
  {
    operation: "createNamespace",
    name: "by its string form and another delimiter",
    run: async (client, ns) => {
      await client.createNamespace({ identifier: `${ns}/by`, delimiter: "/" });
      return await client.namespaceExists({ id: [ns, "by"] });
    },
  },
  {
    operation: "createNamespace",
    name: "that exists",
    fails: "NamespaceAlreadyExists",
    run: (client, ns) => client.createNamespace({ id: [ns, "child"] }),
  },
  {
    operation: "createNamespace",
    name: "that exists, with mode ExistOk",
    run: (client, ns) => client.createNamespace({ id: [ns, "child"], mode: CreateNamespaceMode.EXIST_OK }),
  },
  {
    operation: "createNamespace",
    name: "without a parent",
    fails: "NamespaceNotFound",
    run: (client, ns) => client.createNamespace({ id: [ns, "missing", "new"] }),
  },
  {
    operation: "createNamespace",
    name: "with a name that may not be",
    fails: "InvalidInput",
    run: (client, ns) => client.createNamespace({ id: [ns, "a/b"] }),
  },
  {
    operation: "createNamespace",
    name: "with names that disagree",
    fails: "InvalidInput",
    run: (client, ns) => client.createNamespace({ id: [ns, "a"], identifier: `${ns}$b` }),
  },
  {
    operation: "listNamespaces",
    name: "one page",
    run: async (client, ns) => {
      await client.createNamespace({ id: [ns, "child", "a"] });
      await client.createNamespace({ id: [ns, "child", "b"] });
      return await client.listNamespaces({ id: [ns, "child"], limit: 1 });
    },
  },
  {
    operation: "listNamespaces",
    name: "that is empty",
    run: async (client, ns) => {
      await client.createNamespace({ id: [ns, "leaf"] });
      return await client.listNamespaces({ id: [ns, "leaf"] });
    },
  },
  {
    operation: "listNamespaces",
    name: "of a missing namespace",
    fails: "NamespaceNotFound",
    run: (client, ns) => client.listNamespaces({ id: [ns, "missing"] }),
  },
  { operation: "describeNamespace", name: "of the root", run: (client) => client.describeNamespace() },
  {
    operation: "describeNamespace",
    name: "with properties",
    run: (client, ns) => client.describeNamespace({ id: [ns] }),
  },
  {
    operation: "describeNamespace",
    name: "that is missing",
    fails: "NamespaceNotFound",
    run: (client, ns) => client.describeNamespace({ id: [ns, "missing"] }),
  },
  {
    operation: "namespaceExists",
    name: "that exists",
    run: (client, ns) => client.namespaceExists({ id: [ns] }),
  },
  {
    operation: "namespaceExists",
    name: "that is missing",
    fails: "NamespaceNotFound",
    run: (client, ns) => client.namespaceExists({ id: [ns, "missing"] }),
  },
  {
    operation: "dropNamespace",
    name: "that is not empty",
    fails: "NamespaceNotEmpty",
    run: (client, ns) => client.dropNamespace({ id: [ns] }),
  },
  {
    operation: "dropNamespace",
    name: "that is not empty, with behavior Cascade",
    run: async (client, ns) => {
      await client.createNamespace({ id: [ns, "full"], properties: { a: "1" } });
      await client.declareTable({ id: [ns, "full", "t"] });
      return await client.dropNamespace({ id: [ns, "full"], behavior: DropNamespaceBehavior.CASCADE });
    },
  },
  {
    operation: "dropNamespace",
    name: "that is missing, with mode Skip",
    run: (client, ns) => client.dropNamespace({ id: [ns, "missing"], mode: DropNamespaceMode.SKIP }),
  },
  {
    operation: "dropNamespace",
    name: "of the root",
    fails: "InvalidInput",
    run: (client) => client.dropNamespace(),
  },
  { operation: "listTables", name: "all", run: (client, ns) => client.listTables({ id: [ns] }) },
  {
    operation: "listTables",
    name: "without declared ones",
    run: (client, ns) => client.listTables({ id: [ns], includeDeclared: false }),
  },
  {
    operation: "listTables",
    name: "page by page",
    run: async (client, ns) => {
      const { pageToken = "" } = await client.listTables({ id: [ns], limit: 1 });
      return await client.listTables({ id: [ns], limit: 1, pageToken });
    },
  },
  {
    operation: "listTables",
    name: "of a missing namespace",
    fails: "NamespaceNotFound",
    run: (client, ns) => client.listTables({ id: [ns, "missing"] }),
  },
  { operation: "listAllTables", name: "one page", run: (client) => client.listAllTables({ limit: 1 }) },
  {
    operation: "declareTable",
    name: "with properties",
    run: (client, ns) => client.declareTable({ id: [ns, "declared"], properties: { a: text } }),
  },
  {
    operation: "declareTable",
    name: "that exists",
    fails: "TableAlreadyExists",
    run: (client, ns) => client.declareTable({ id: [ns, "t"] }),
  },
  {
    operation: "declareTable",
    name: "without a parent",
    fails: "NamespaceNotFound",
    run: (client, ns) => client.declareTable({ id: [ns, "missing", "t"] }),
  },
  {
    operation: "registerTable",
    name: "with mode Overwrite",
    run: async (client, ns) => {
      const location = `${ns}-data.lance`;
      const mode = RegisterTableMode.OVERWRITE;
      await client.declareTable({ id: [ns, "former"], location });
      await client.deregisterTable({ id: [ns, "former"] });
      return await client.registerTable({ id: [ns, "registered"], location, mode, properties: { a: "1" } });
    },
  },
  {
    operation: "registerTable",
    name: "that exists",
    fails: "TableAlreadyExists",
    run: (client, ns) => client.registerTable({ id: [ns, "t"], location: `${ns}.lance` }),
  },
  {
    operation: "registerTable",
    name: "outside the catalog",
    fails: "InvalidInput",
    run: (client, ns) => client.registerTable({ id: [ns, "x"], location: "../x.lance" }),
  },
  {
    operation: "describeTable",
    name: "with all flags",
    run: (client, ns) => {
      const flags = { withTableUri: true, loadDetailedMetadata: true, checkDeclared: true };
      return client.describeTable({ id: [ns, "t"], ...flags });
    },
  },
  {
    operation: "describeTable",
    name: "with no flags",
    run: (client, ns) => client.describeTable({ id: [ns, "t"] }),
  },
  {
    operation: "describeTable",
    name: "that is only declared",
    run: (client, ns) => client.describeTable({ id: [ns, "d"], checkDeclared: true }),
  },
  {
    operation: "describeTable",
    name: "that is missing",
    fails: "TableNotFound",
    run: (client, ns) => client.describeTable({ id: [ns, "missing"] }),
  },
  {
    operation: "describeTable",
    name: "at a missing version",
    fails: "TableVersionNotFound",
    run: (client, ns) => client.describeTable({ id: [ns, "t"], version: 9_007_199_254_740_991n }),
  },
  {
    operation: "tableExists",
    name: "that exists",
    run: (client, ns) => client.tableExists({ id: [ns, "t"] }),
  },
  {
    operation: "tableExists",
    name: "that is missing",
    fails: "TableNotFound",
    run: (client, ns) => client.tableExists({ id: [ns, "missing"] }),
  },
  {
    operation: "deregisterTable",
    name: "that exists",
    run: async (client, ns) => {
      await client.declareTable({ id: [ns, "away"], properties: { a: "1" } });
      return await client.deregisterTable({ id: [ns, "away"] });
    },
  },
  {
    operation: "deregisterTable",
    name: "that is missing",
    fails: "TableNotFound",
    run: (client, ns) => client.deregisterTable({ id: [ns, "missing"] }),
  },
  {
    operation: "dropTable",
    name: "that exists",
    run: async (client, ns) => {
      await client.createTable({ id: [ns, "dropped"] }, personStream(people(1)));
      return await client.dropTable({ id: [ns, "dropped"] });
    },
  },
  {
    operation: "dropTable",
    name: "that is missing",
    fails: "TableNotFound",
    run: (client, ns) => client.dropTable({ id: [ns, "missing"] }),
  },
];
