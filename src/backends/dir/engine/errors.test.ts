import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorName } from "../../../namespace/errors.ts";
import { toEngineError } from "./errors.ts";

/** What engine 0.39 says, and what it means. */
const SAID: readonly (readonly [text: string, name: ErrorName, message?: string])[] = [
  ["Table 'eA' already exists", "TableAlreadyExists"],
  ["Table 'eA' was not found\n\nCaused by: Dataset at path x/y was not found", "TableNotFound"],
  [
    "lance error: Not found: tmp/a.lance/_versions, /cargo/lance-table/src/io/commit.rs:670:26",
    "TableNotFound",
  ],
  [
    "lance error: Dataset at path a.lance/_versions/99.manifest was not found: Not found: a.lance/_versions/99.manifest",
    "TableVersionNotFound",
  ],
  [
    "Invalid input, Schema error: No field named x. Valid fields are id, _rowid, _rowaddr, _rowoffset.",
    "TableColumnNotFound",
    "No field named x. Valid fields are id.",
  ],
  [
    "Failed to execute query stream: GenericFailure, lance error: LanceError(Index): column x does not exist in schema F(id=0)\n, /cargo/utils.rs:1:2",
    "TableColumnNotFound",
  ],
  ["Invalid input, Error parsing statement: SELECT 1 (sql parser error: Expected)", "InvalidInput"],
  ["Invalid input, field 'zz' does not exist in table schema", "TableSchemaValidationError"],
  [
    "lance error: LanceError(Arrow): Cast error: Cannot cast string 'abc' to value of Int32 type, /cargo/utils.rs:51:31",
    "TableSchemaValidationError",
    "Cast error: Cannot cast string 'abc' to value of Int32 type",
  ],
  ["Failed to read IPC file: Arrow error: Parser error: no footer", "InvalidInput"],
  ["Failed to read record batch from IPC file: Io error: BlockTooBig", "InvalidInput"],
  [
    "lance error: Dataset version 30 does not have a transaction file, /cargo/dataset.rs:3625:29",
    "ConcurrentModification",
  ],
  ["lance error: Too many concurrent writers", "ConcurrentModification"],
  ["lance error: disk is full at /secret/path", "Internal"],
];

test("each text of the engine has its meaning", () => {
  for (const [text, name, message] of SAID) {
    const cause = new Error(text);
    const error = toEngineError(cause);
    assert.equal(error.entry.name, name, text);
    assert.equal(error.cause, cause);
    assert.doesNotMatch(error.message, /cargo|secret|\n/, text);
    if (message !== undefined) assert.equal(error.message, message);
  }
});
