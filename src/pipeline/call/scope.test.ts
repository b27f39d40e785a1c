import assert from "node:assert/strict";
import { create, type DescMessage } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { createScope } from "./scope.ts";

const { describeTable, renameTable, batchCommitTables, batchCreateTableVersions, listTables } =
  LanceNamespaceService.method;

const isInvalid = (error: unknown) => isLanceError(error, "InvalidInput");

describe("createScope", () => {
  it("takes the database from the names of a request", () => {
    const scope = createScope(describeTable);
    const request = create(describeTable.input, { id: ["sales", "ns", "t"], identifier: "sales$ns$t" });
    assert.equal(scope.find(request), "sales");
    scope.strip(request, "sales");
    assert.deepEqual([request.id, request.identifier], [["ns", "t"], ""]);
  });

  it("gives it back to an answer", () => {
    const { restore } = createScope(describeTable);
    const inNamespace = create(describeTable.output, { table: "t", namespace: ["ns"] });
    restore(inNamespace, "sales");
    assert.deepEqual([inNamespace.table, inNamespace.namespace], ["t", ["sales", "ns"]]);
    const inRoot = create(describeTable.output, { table: "t" });
    restore(inRoot, "sales");
    assert.deepEqual(inRoot.namespace, ["sales"]);
    const silent = create(describeTable.output);
    restore(silent, "sales");
    assert.deepEqual(silent.namespace, []);
  });

  it("keeps a table in its database when it is renamed", () => {
    const { strip } = createScope(renameTable);
    const within = create(renameTable.input, { id: ["sales", "t"], newNamespaceId: ["sales", "ns"] });
    strip(within, "sales");
    assert.deepEqual([within.id, within.newNamespaceId], [["t"], ["ns"]]);
    const sameNamespace = create(renameTable.input, { id: ["sales", "t"] });
    strip(sameNamespace, "sales");
    assert.deepEqual(sameNamespace.newNamespaceId, []);
    for (const newNamespaceId of [["events"], ["sales"]]) {
      const request = create(renameTable.input, { id: ["sales", "t"], newNamespaceId });
      assert.throws(() => strip(request, "sales"), isInvalid);
    }
  });

  it("reaches the operations of a commit, also where they name objects by one string", () => {
    const scope = createScope(batchCommitTables);
    const request = create(batchCommitTables.input, {
      delimiter: ".",
      operations: [
        { operation: { case: "declareTable", value: { identifier: "sales.ns.a" } } },
        { operation: { case: "deregisterTable", value: { id: ["sales", "b"] } } },
      ],
    });
    assert.equal(scope.find(request), "sales");
    scope.strip(request, "sales");
    const [first, second] = request.operations.map(({ operation }) => operation.value as { id: string[] });
    assert.deepEqual([first?.id, second?.id], [["ns", "a"], ["b"]]);
    const answer = create(batchCommitTables.output, {
      results: [{ result: { case: "deregisterTable", value: { id: ["b"] } } }],
    });
    scope.restore(answer, "sales");
    assert.deepEqual(answer.results[0]?.result.value, {
      ...answer.results[0]?.result.value,
      id: ["sales", "b"],
    });
  });

  it("refuses objects of several databases in one call", () => {
    const scope = createScope(batchCreateTableVersions);
    const entries = [{ id: ["sales", "a"] }, { id: ["events", "b"] }];
    const request = create(batchCreateTableVersions.input, { entries });
    assert.equal(scope.find(request), "sales");
    assert.throws(() => scope.strip(request, "sales"), isInvalid);
  });

  it("refuses an operation that names its object twice and differently", () => {
    const request = create(batchCommitTables.input, {
      operations: [
        { operation: { case: "declareTable", value: { identifier: "sales$a", id: ["sales", "b"] } } },
      ],
    });
    assert.throws(() => createScope(batchCommitTables).strip(request, "sales"), isInvalid);
  });

  it("lets be what has no names", () => {
    const { restore } = createScope(listTables);
    const answer = create(listTables.output, { tables: ["a"] });
    restore(answer, "sales");
    assert.deepEqual(answer.tables, ["a"]);
  });

  it("knows of every list that could be a path of names", () => {
    const found = new Set<string>();
    const visit = (type: DescMessage, side: string, seen: Set<DescMessage>) => {
      if (seen.has(type)) return;
      seen.add(type);
      for (const field of type.fields) {
        if (field.message) visit(field.message, side, seen);
        if (field.fieldKind === "list" && /(?:^|_)id$|namespace|path/.test(field.name)) {
          found.add(`${side} ${field.name}`);
        }
      }
    };
    for (const { input, output } of LanceNamespaceService.methods) {
      visit(input, "request", new Set());
      visit(output, "answer", new Set());
    }
    const expected = [
      "answer id",
      "answer namespace",
      "answer namespaces",
      "answer transaction_id",
      "request id",
      "request new_namespace_id",
    ];
    assert.deepEqual([...found].sort(), expected);
  });
});
