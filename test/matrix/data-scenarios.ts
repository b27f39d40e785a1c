import { CreateTableMode, InsertMode } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { columnsOf, cut, otherStream, people, personStream, rowsOf } from "../support/arrow.ts";
import type { Download } from "../support/client.ts";
import { type Scenario, text } from "./scenario.ts";

/** Returns the content of a download, whether it came as a stream or as a file. */
async function result(download: Promise<Download>): Promise<unknown> {
  const { bytes } = await download;
  return { columns: columnsOf(bytes), rows: rowsOf(bytes) };
}

/** The operations on the rows of tables, with success and with failure. */
export const DATA_SCENARIOS: readonly Scenario[] = [
  {
    operation: "createTable",
    name: "with properties, in pieces",
    run: (client, ns) =>
      client.createTable({ id: [ns, "created"], properties: { a: text } }, cut(personStream(people(9)), 100)),
  },
  {
    operation: "createTable",
    name: "that exists",
    fails: "TableAlreadyExists",
    run: (client, ns) => client.createTable({ id: [ns, "t"] }, personStream(people(1))),
  },
  {
    operation: "createTable",
    name: "that exists, with mode ExistOk",
    run: (client, ns) =>
      client.createTable({ id: [ns, "t"], mode: CreateTableMode.EXIST_OK }, personStream(people(1))),
  },
  {
    operation: "createTable",
    name: "that is declared, with mode Overwrite",
    run: async (client, ns) => {
      await client.declareTable({ id: [ns, "filled"] });
      const mode = CreateTableMode.OVERWRITE;
      return await client.createTable({ id: [ns, "filled"], mode }, personStream(people(2)));
    },
  },
  {
    operation: "createTable",
    name: "from no bytes",
    fails: "InvalidInput",
    run: (client, ns) => client.createTable({ id: [ns, "empty"] }, new Uint8Array()),
  },
  {
    operation: "insertIntoTable",
    name: "with both modes",
    run: async (client, ns) => {
      await client.createTable({ id: [ns, "grown"] }, personStream(people(2)));
      const appended = await client.insertIntoTable({ id: [ns, "grown"] }, personStream(people(3)));
      const mode = InsertMode.OVERWRITE;
      const replaced = await client.insertIntoTable({ id: [ns, "grown"], mode }, personStream(people(1)));
      return [appended, replaced];
    },
  },
  {
    operation: "insertIntoTable",
    name: "of another schema",
    fails: "TableSchemaValidationError",
    run: (client, ns) => client.insertIntoTable({ id: [ns, "t"] }, otherStream()),
  },
  {
    operation: "insertIntoTable",
    name: "into a missing table",
    fails: "TableNotFound",
    run: (client, ns) => client.insertIntoTable({ id: [ns, "missing"] }, personStream([])),
  },
  { operation: "countTableRows", name: "all", run: (client, ns) => client.countTableRows({ id: [ns, "t"] }) },
  {
    operation: "countTableRows",
    name: "by condition and version",
    run: (client, ns) => client.countTableRows({ id: [ns, "t"], predicate: "id > 2", version: 1n }),
  },
  {
    operation: "countTableRows",
    name: "by a wrong condition",
    fails: "InvalidInput",
    run: (client, ns) => client.countTableRows({ id: [ns, "t"], predicate: "id >" }),
  },
  {
    operation: "queryTable",
    name: "scan",
    run: (client, ns) => result(client.queryTable({ id: [ns, "t"] })),
  },
  {
    operation: "queryTable",
    name: "with everything of a scan",
    run: (client, ns) => {
      const columns = { columnNames: ["name", "id"] };
      const options = { filter: "id > 0", k: 2n, offset: 1n, withRowId: true, version: 1n };
      return result(client.queryTable({ id: [ns, "t"], columns, ...options }));
    },
  },
  {
    operation: "queryTable",
    name: "under other names",
    run: (client, ns) => {
      const columns = { columnAliases: { label: "name" } };
      return result(client.queryTable({ id: [ns, "t"], columns, k: 1n }));
    },
  },
  {
    operation: "queryTable",
    name: "near a vector",
    run: (client, ns) =>
      result(
        client.queryTable({ id: [ns, "t"], vector: { singleVector: [2.25, 0] }, k: 2n, upperBound: 9.5 }),
      ),
  },
  {
    operation: "queryTable",
    name: "without a result",
    run: (client, ns) => result(client.queryTable({ id: [ns, "t"], filter: "id > 99" })),
  },
  {
    operation: "queryTable",
    name: "of a missing column",
    fails: "TableColumnNotFound",
    run: (client, ns) => client.queryTable({ id: [ns, "t"], columns: { columnNames: ["nothing"] } }),
  },
  {
    operation: "queryTable",
    name: "of a missing table",
    fails: "TableNotFound",
    run: (client, ns) => client.queryTable({ id: [ns, "missing"] }),
  },
];
