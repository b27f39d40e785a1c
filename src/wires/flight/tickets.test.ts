import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { ownerKey } from "../../namespace/call/caller-key.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { createTickets, TICKET_MS } from "./tickets.ts";

const owner = ownerKey({ principal: undefined, identity: { apiKey: "k", authToken: undefined } });
const query = create(QueryTableRequestSchema, { id: ["t"], version: 3n });

test("a ticket has its rows, and is refused after its time", () => {
  let now = 1_000;
  const tickets = createTickets(
    () => "secret",
    () => now,
  );
  const { ticket } = tickets.issue({ kind: "table", query }, owner, { "x-service-database": "d" });
  const content = tickets.open(ticket.ticket);
  assert.deepEqual(content.rows, { kind: "table", query });
  assert.deepEqual(content.database, { "x-service-database": "d" });
  now += TICKET_MS + 1;
  assert.throws(
    () => tickets.open(ticket.ticket),
    (error) => isLanceError(error, "InvalidInput") && /expired/.test(error.message),
  );
  const renewed = tickets.renew(content);
  assert.equal(tickets.open(renewed.ticket.ticket).owner, content.owner);
});

test("a ticket shows nothing of its content, and opens with its secret alone", () => {
  let secret = "one";
  const tickets = createTickets(() => secret);
  const salaries = create(QueryTableRequestSchema, { id: ["salaries"] });
  const { ticket } = tickets.issue({ kind: "table", query: salaries }, owner, {});
  assert.ok(!Buffer.from(ticket.ticket).includes("salaries"));
  secret = "two";
  assert.throws(
    () => tickets.open(ticket.ticket),
    (error) => isLanceError(error, "InvalidInput"),
  );
});

test("keeps statements, their parameters and commands", () => {
  const tickets = createTickets(() => "secret");
  const statement = { text: "SELECT ?", namespacePath: ["team"], parameters: Buffer.of(1, 2) };
  for (const rows of [
    { kind: "statement", statement },
    { kind: "prepared", statement: { ...statement, parameters: undefined } },
    { kind: "metadata", command: Buffer.of(3), namespacePath: [] },
  ] as const)
    assert.deepEqual(tickets.open(tickets.issue(rows, owner, {}).ticket.ticket).rows, rows);
});
