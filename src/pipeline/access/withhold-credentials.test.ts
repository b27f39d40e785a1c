import assert from "node:assert/strict";
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { type Action, allows, type Role } from "../../namespace/call/principal.ts";
import type { StorageAccess } from "../../namespace/lance-namespace.ts";
import { callBackend } from "../call/databases.ts";
import { compose } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { withholdCredentials } from "./withhold-credentials.ts";

const { describeTable, declareTable, batchCommitTables } = LanceNamespaceService.method;
const SECRETS = { aws_secret_access_key: "secret" };

/** Creates a service in front of an upstream that hands out credentials whatever it is asked for. */
function serviceWith(handsOut: StorageAccess | undefined) {
  const asked: (boolean | undefined)[] = [];
  const answer = { properties: {}, storageOptions: { ...SECRETS } };
  const backend = {
    ...fakeBackend({
      async describeTable({ vendCredentials }) {
        asked.push(vendCredentials);
        return create(describeTable.output, answer);
      },
      async declareTable({ vendCredentials }) {
        asked.push(vendCredentials);
        return create(declareTable.output, answer);
      },
      async batchCommitTables({ operations }) {
        for (const { operation } of operations)
          if (operation.case === "declareTable") asked.push(operation.value.vendCredentials);
        const results = operations.map(() => ({ result: { case: "declareTable" as const, value: answer } }));
        return create(batchCommitTables.output, { results });
      },
    }),
    handsOut,
  };
  const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 1 } }]]);
  const service = serviceOf(compose([withholdCredentials(databases)], callBackend(databases)));
  return {
    asked,
    async call<M extends DescMethodUnary>(method: M, init: object, facts: Partial<Call>) {
      const request = create(method.input, { id: ["t"], ...init } as never);
      return (await service.unary(method, request, beginCall(method, facts))) as Message;
    },
  };
}

const as = (role: Role) => ({ may: (action: Action) => allows({ role }, action), takes: "json" as const });
const optionsOf = (answer: Message) => (answer as unknown as { storageOptions: object }).storageOptions;

describe("credentials that an upstream hands out", () => {
  it("reach only callers who may do what they allow, and everyone where nothing decides about callers", async () => {
    for (const [handsOut, getting] of [
      ["read", ["reader", "writer", "owner"]],
      ["write", ["writer", "owner"]],
      ["manage", ["owner"]],
    ] as const) {
      const { call } = serviceWith(handsOut);
      for (const role of ["none", "reader", "writer", "owner"] as const)
        for (const method of [describeTable, declareTable]) {
          const expected = (getting as readonly string[]).includes(role) ? SECRETS : {};
          assert.deepEqual(optionsOf(await call(method, {}, as(role))), expected, `${handsOut} ${role}`);
        }
      assert.deepEqual(optionsOf(await call(describeTable, {}, {})), SECRETS);
    }
  });

  it("are not asked for where nobody gets them, and the answer is read to remove them", async () => {
    const { call, asked } = serviceWith("manage");
    const facts = as("reader");
    await call(describeTable, { vendCredentials: true }, facts);
    await call(describeTable, { vendCredentials: true }, as("owner"));
    assert.deepEqual(asked, [false, true]);
  });

  it("are removed from the entries of a commit, too", async () => {
    const { call, asked } = serviceWith("manage");
    const operations = [{ operation: { case: "declareTable", value: { id: ["t"], vendCredentials: true } } }];
    const { results } = (await call(batchCommitTables, { operations }, as("writer"))) as Message & {
      results: { result: { value: Message } }[];
    };
    assert.deepEqual(
      results.map(({ result }) => optionsOf(result.value)),
      [{}],
    );
    assert.deepEqual(asked, [false]);
  });

  it("are the backend's matter if it asks what callers may do", async () => {
    const { call } = serviceWith(undefined);
    assert.deepEqual(optionsOf(await call(describeTable, {}, as("none"))), SECRETS);
  });
});
