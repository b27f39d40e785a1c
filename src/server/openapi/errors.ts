import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { ERROR_TABLE, type ErrorEntry, type ErrorName } from "../../namespace/errors.ts";
import { commentOf } from "./comments.ts";
import type { Schemas } from "./schemas.ts";

/** Errors that every operation can answer; the comments of the contract name the others. */
const COMMON: ReadonlySet<string> = new Set<ErrorName>([
  "Unsupported",
  "InvalidInput",
  "PermissionDenied",
  "Unauthenticated",
  "ServiceUnavailable",
  "Internal",
  "Throttling",
  "UnsupportedMediaType",
  "PayloadTooLarge",
  "DeadlineExceeded",
  "OutcomeUnknown",
]);

/** Returns the errors of an operation by their statuses, each with the names that it can have. */
export function errorsOf(method: DescMethod): Readonly<Record<string, unknown>> {
  const named = new Set((commentOf(method) ?? "").match(/\b[A-Z]\w+/g));
  const entries = ERROR_TABLE.filter(({ name }) => COMMON.has(name) || named.has(name));
  return Object.fromEntries(
    [...byStatus(entries)].map(([status, rows]) => [
      status,
      { $ref: `#/components/responses/${componentName(status)}`, description: namesOf(rows) },
    ]),
  );
}

/** Returns an answer for each status of the error table, with an example of each row. */
export function errorResponses(schemas: Schemas, body: DescMessage): Readonly<Record<string, unknown>> {
  const schema = schemas.message(body);
  return Object.fromEntries(
    [...byStatus(ERROR_TABLE)].map(([status, rows]) => {
      const examples = Object.fromEntries(rows.map((row) => [row.name, { value: exampleOf(row) }]));
      const content = { "application/json": { schema, examples } };
      return [componentName(status), { description: namesOf(rows), content }];
    }),
  );
}

function byStatus(rows: readonly ErrorEntry[]): Map<number, ErrorEntry[]> {
  return Map.groupBy(rows, ({ httpStatus }) => httpStatus);
}

function componentName(status: number): string {
  return `Error${status}`;
}

function namesOf(rows: readonly ErrorEntry[]): string {
  return rows.map(({ name, code }) => `${name} (code ${code})`).join(", ");
}

function exampleOf({ code, name, type, title, httpStatus: status }: ErrorEntry): unknown {
  const instance = "/v1/table/a%24b/describe";
  return { error: "what was wrong, and where", code, kind: name, type, title, status, detail: "", instance };
}
