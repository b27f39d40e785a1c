import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { ViewService } from "../../../../gen/lance/gateway/v1/sql_view_pb.ts";
import { type Row, VIEW_KIND } from "../../catalog/state/row.ts";
import { createSqlViewOperations } from "./sql-views.ts";

const { describeView } = ViewService.method;

test.each([
  ["", "[]"],
  ["ffffffff", "[]"],
  ["ffffffff00000000ffffffff", "[]"],
  [`ffffffff10000000${"00".repeat(16)}`, "[]"],
  ["", "{}"],
  ["", "[1]"],
  ["", "["],
  ["", undefined],
])(
  "a view that another program has written with the columns %j and the namespace %j is damaged",
  async (schema, namespace) => {
    const properties = {
      "lance_gateway.sql_view.query": "SELECT 1",
      "lance_gateway.sql_view.schema": Buffer.from(schema, "hex").toString("base64"),
      ...(namespace !== undefined && { "lance_gateway.sql_view.namespace": namespace }),
    };
    const row: Row = { objectId: "v", objectType: VIEW_KIND, location: undefined, properties };
    const operations = createSqlViewOperations({
      catalog: { read: async () => ({ get: () => row }) },
    } as never);
    const described = operations.describeView(
      create(describeView.input),
      beginCall(describeView, { id: ["v"] }),
    );
    await expect(described).rejects.toThrow(/the row of the view v in the catalog is damaged/);
  },
);
