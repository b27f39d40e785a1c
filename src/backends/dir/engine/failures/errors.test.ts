import assert from "node:assert/strict";
import { test } from "vitest";
import type { ErrorName } from "../../../../namespace/errors.ts";
import { toEngineError } from "./errors.ts";

/** Texts of engine 0.39, and their meanings. */
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
  [
    "Invalid user input: Error parsing statement: SELECT 1 FROM t WHERE (a > 1 b = 2) (sql parser error: Expected: ), found: b), /cargo/planner.rs:1:2",
    "InvalidInput",
    "the SQL text is refused: it goes on with b where its expression, or a part in brackets, is complete; an operator such as AND may be missing",
  ],
  [
    "Invalid user input: Error parsing statement: SELECT 1 FROM t WHERE (\ta >\t) (sql parser error: Expected: an expression, found: )), /cargo/planner.rs:1:2",
    "InvalidInput",
    "Error parsing statement: SELECT 1 FROM t WHERE a > (sql parser error: Expected: an expression, found: EOF)",
  ],
  [
    'Failed to execute query stream: GenericFailure, lance error: LanceError(Arrow): Not yet implemented: Row format support not yet implemented for: [SortField { data_type: Map(Field { name: "entries" }, false) }], /cargo/exec.rs:711:18',
    "InvalidInput",
    "the engine cannot order by a column of this type",
  ],
  [
    "Invalid input, Expression 'CASE WHEN a IN (1) OR random() > 2 OR a IN (2) THEN 1 END' is not supported SQL in lance",
    "InvalidInput",
    "Expression 'CASE WHEN a IN (1) OR a IN (2) THEN 1 END' is not supported SQL in lance",
  ],
  ["Invalid input, Blob row address 99 references missing fragment 7", "InvalidInput"],
  [
    "Invalid input, Failed to deserialize FTS query from JSON: expected value at line 1 column 1",
    "InvalidInput",
  ],
  [
    "Invalid input, Failed to parse UpdateIf condition: Invalid user input: Error parsing statement: SELECT 1 (sql parser error: Expected)",
    "InvalidInput",
  ],
  [
    "Failed to execute merge insert: GenericFailure, Arrow error: Io error: Data corruption detected\n\nCaused by: x",
    "InvalidInput",
    "the Arrow body is broken, or a compressed buffer in it",
  ],
  [
    "Arrow error: Ipc error: Expected compressed length of 40 got 44\n\nCaused by: Ipc error",
    "InvalidInput",
    "the Arrow body is broken, or a compressed buffer in it",
  ],
  ["lance error: LanceError(IO): Io error: Data corruption detected, /cargo/reader.rs:1:2", "DataLoss"],
  [
    'lance error: Query Execution error: Execution error: Failed to search partitions: Wrapped error: task 51 panicked with message "x", /cargo/x.rs:1:2',
    "Internal",
    "the engine failed; the server's log has it under this request's id",
  ],
  [
    'Runtime error: Insert task panicked: task 24 panicked with message "called `Result::unwrap()` on an `Err` value: InvalidArgumentError(\\"Found unmasked nulls for non-nullable StructArray field \\\\"x\\\\"\\")"',
    "TableSchemaValidationError",
    "a non-nullable struct field contains null",
  ],
  [
    "Failed to get next batch from stream: Invalid input, JSON path '$.a' has a value without a type tag",
    "InvalidInput",
    "JSON path '$.a' has a value without a type tag",
  ],
  [
    "Phrase queries cannot be used with multiple columns.",
    "InvalidInput",
    "Phrase queries cannot be used with multiple columns.",
  ],
  [
    "Schema Error: FTS field path `a` has a list without an item field",
    "InvalidInput",
    "FTS field path `a` has a list without an item field",
  ],
  [
    "lance error: LanceError(Arrow): Schema error: field a does not exist in source struct b, /cargo/x.rs:1:2",
    "TableSchemaValidationError",
    "field a does not exist in source struct b",
  ],
  [
    "lance error: Cleanup error: Error encountered while parsing lance.auto_cleanup.interval as u64: invalid digit",
    "InvalidTableState",
    "Error encountered while parsing lance.auto_cleanup.interval as u64: invalid digit",
  ],
  [
    "lance error: Wrapped error: Commit result for version 4 is unknown: the commit may or may not have been applied; check the table state before retrying: error sending request, /cargo/commit.rs:1:2",
    "OutcomeUnknown",
    "the storage of the table failed during a commit, which may be stored or not; look before you repeat it",
  ],
  [
    "lance error: LanceError(Index): Index with id 5f does not exist, /cargo/index.rs:1:2",
    "TableIndexNotFound",
  ],
  ["Index 'i' was not found", "TableIndexNotFound"],
  [
    "lance error: LanceError(Schema): Unsupported logical type: float8, /cargo/datatypes.rs:1:2",
    "Unsupported",
    "the table has a column of a type that the engine of this version does not know",
  ],
  ["Job was cancelled", "Cancelled"],
  ["lance error: Write rejected by backpressure: full, /cargo/x.rs:1:2", "Throttling"],
  ["lance error: Writer fenced (peer claimed epoch): 3, /cargo/x.rs:1:2", "ConcurrentModification"],
  [
    "lance error: Spill disk cap of 9 bytes exceeded; currently using 8 bytes, /cargo/x.rs:1:2",
    "ServiceUnavailable",
  ],
  ["Timeout error: timed out waiting for indices: [] after 1s", "DeadlineExceeded"],
  ["Invalid input, field 'zz' does not exist in table schema", "TableSchemaValidationError"],
  [
    "lance error: LanceError(Arrow): Cast error: Cannot cast string 'abc' to value of Int32 type, /cargo/utils.rs:51:31",
    "TableSchemaValidationError",
    "Cast error: Cannot cast string 'abc' to value of Int32 type",
  ],
  [
    "Failed to execute merge insert: GenericFailure, Invalid input, Schema error: No field named target.x. Valid fields are target.id, target._rowid, source.id, source.__merge_source_sentinel.",
    "TableColumnNotFound",
    "No field named target.x. Valid fields are target.id, source.id.",
  ],
  [
    "Failed to retrieve the query plan: GenericFailure, Invalid input, Error parsing statement: SELECT",
    "InvalidInput",
    "Error parsing statement: SELECT",
  ],
  [
    "Failed to get next batch from stream: lance error: Query Execution error: Error applying filter expression to batch: Arrow error: Cast error: Cannot cast string 'a' to value of Int32 type, /cargo/filtered_read.rs:1578:33",
    "InvalidInput",
    "Cast error: Cannot cast string 'a' to value of Int32 type",
  ],
  [
    "Invalid input, Invalid directory path: /home/me/.local/share/lance/language_models/jieba/default",
    "InvalidInput",
    "the server has no usable language model of this base tokenizer in the directory LANCE_LANGUAGE_MODEL_HOME",
  ],
  [
    "Failed to execute merge insert: GenericFailure, Runtime error: merge insert timed out",
    "DeadlineExceeded",
    "merge insert timed out",
  ],
  [
    "Failed to get next batch from stream: lance error: Query Execution error: Execution error: Query timeout after 5 ms, /cargo/scanner.rs:7238:66",
    "DeadlineExceeded",
    "Query timeout after 5 ms",
  ],
  [
    "Failed to execute query stream: GenericFailure, lance error: LanceError(Index): FTS field path 'x' does not exist in the dataset schema, /cargo/inverted.rs:429:13",
    "TableColumnNotFound",
  ],
  ["Failed to read IPC file: Arrow error: Parser error: no footer", "InvalidInput"],
  ["Failed to read record batch from IPC file: Io error: BlockTooBig", "InvalidInput"],
  [
    "Failed to execute merge insert: GenericFailure, Arrow error: Not yet implemented: compression type <UNKNOWN 5> not supported",
    "InvalidInput",
  ],
  [
    "lance error: Dataset version 30 does not have a transaction file, /cargo/dataset.rs:3625:29",
    "ConcurrentModification",
  ],
  ["lance error: Too many concurrent writers", "ConcurrentModification"],
  [
    "Invalid user input: Unknown Lance storage version: 2.9, /cargo/version.rs:271:5",
    "Unsupported",
    "the table has a data format that is newer than the engine of this version",
  ],
  [
    "lance error: LanceError(Index): Index name 'id_idx' already exists, please specify a different name or use replace=True, /cargo/create.rs:319:24",
    "TableIndexAlreadyExists",
    "Index name 'id_idx' already exists, please specify a different name or use replace=True",
  ],
  ["lance error: Lance index not found: name=x, /cargo/index.rs:1:2", "TableIndexNotFound"],
  [
    "Schema Error: Field path `nope` not found in schema. Available field paths: id",
    "TableColumnNotFound",
    "Field path `nope` not found in schema. Available field paths: id",
  ],
  ["lance error: Field 'no pe' not found.\nAvailable fields: ['id']", "TableColumnNotFound"],
  ['Invalid input, Column "no pe" does not exist in the dataset', "TableColumnNotFound"],
  ["Invalid input, Column x already exists in the dataset", "TableSchemaValidationError"],
  ["Column 'c' already exists", "TableSchemaValidationError"],
  [
    'lance error: LanceError(Schema): Duplicate field name "q" in schema:\n Schema',
    "TableSchemaValidationError",
  ],
  [
    'Invalid input, Column "n" contains NULL values and cannot be made non-nullable',
    "TableSchemaValidationError",
  ],
  [
    "Schema Error: A BTree index cannot be created on the field `v` which has data type Int32",
    "InvalidInput",
  ],
  [
    "lance error: Unprocessable: KMeans cannot train 9 centroids with 2 vectors; choose a smaller K (< 2), /cargo/kmeans.rs:1:2",
    "InvalidInput",
    "KMeans cannot train 9 centroids with 2 vectors; choose a smaller K (< 2)",
  ],
  ["Invalid expression for column 'e': 'random' is not deterministic", "InvalidInput"],
  ["not yet implemented", "InvalidInput"],
  [
    "lance error: Not supported: Creating empty vector indices with train=False is not yet implemented. Index 'a' for column 'v' cannot be created without training., /x.rs:1:2",
    "InvalidTableState",
  ],
  ["Job failed: lance error: LanceError(Arrow): Divide by zero error, /x.rs:1:2", "InvalidInput"],
  [
    "Failed to execute query stream: GenericFailure, lance error: Query Execution error: Execution error: Cannot access field at argument 1: type Utf8 is not Struct, Map, or Null, /cargo/planner.rs:1063:20",
    "InvalidInput",
    "Execution error: Cannot access field at argument 1: type Utf8 is not Struct, Map, or Null",
  ],
  [
    "lance error: LanceError(IO): Internal error: Failed to coerce types Null and Int64 in BETWEEN expression.\nThis issue was likely caused by a bug in DataFusion's code. Please help us, /cargo/x.rs:1:2",
    "InvalidInput",
    "the engine cannot evaluate the expression",
  ],
  [
    "lance error: LanceError(Arrow): Compute error: Regular expression did not compile: (, /cargo/x.rs:1:2",
    "InvalidInput",
    "Compute error: Regular expression did not compile: (",
  ],
  ["lance error: disk is full at /secret/path", "Internal"],
  [
    "Failed to execute query stream: GenericFailure, LanceDBError: not supported: the MemWAL LSM scanner does not support order_by",
    "Unsupported",
    "the MemWAL LSM scanner does not support order_by",
  ],
  [
    "lance error: Ref not found error: tag nope does not exist",
    "TableTagNotFound",
    "Ref not found error: tag nope does not exist",
  ],
  ["lance error: Dataset already exists: /secret/t.lance, /cargo/x.rs:1:2", "TableAlreadyExists"],
  ["lance error: Version not found error: version main:99 does not exist", "TableVersionNotFound"],
  ["lance error: Ref conflict error: tag one already exists", "TableTagAlreadyExists"],
  [
    "lance error: Ref is invalid: Ref characters must be either alphanumeric, '.', '-' or '_'",
    "InvalidInput",
  ],
  ["lance error: Incompatible transaction: x, /cargo/x.rs:1:2", "ConcurrentModification"],
  [
    "lance error: Query Execution error: Resources exhausted: Failed to allocate additional 1 MB, /cargo/x.rs:1:2",
    "InvalidInput",
  ],
  ["Arrow error: Arithmetic overflow: Overflow happened on: 1 + 2", "InvalidInput"],
  [
    "lance error: LanceError(IO): Unable to copy file: No space left on device (os error 28), /x.rs:1:2",
    "ServiceUnavailable",
  ],
  ["lance error: LanceError(IO): Read-only file system (os error 30), /x.rs:1:2", "Unsupported"],
  ["lance error: LanceError(IO): Permission denied (os error 13), /x.rs:1:2", "ServiceUnavailable"],
  [
    "lance error: LanceError(IO): Generic LocalFileSystem error: Unable to walk dir: IO error for operation on /secret/_versions: Too many open files (os error 24), /x.rs:1:2",
    "ServiceUnavailable",
    "the server has too many open files",
  ],
  [
    "LanceError(IO): Generic S3 error: Server returned non-2xx status code: 503 Service Unavailable: <Error><Code>SlowDown</Code></Error>",
    "Throttling",
  ],
  [
    "LanceError(IO): Generic S3 error: Error performing GET http://h/b after 1 retries: HTTP error: error sending request",
    "ServiceUnavailable",
  ],
  ["LanceError(IO): Generic S3 error: non-2xx status code: 502 Bad Gateway: <html>", "ServiceUnavailable"],
  [
    "lance error: Invalid user input: Error resolving filter expression a BETWEEN 1.500 AND 'x': Invalid user input: Received literal",
    "InvalidInput",
  ],
  ["LanceError(IO): non-2xx status code: 403 Forbidden: <Code>AccessDenied</Code>", "ServiceUnavailable"],
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

test("a signed address does not get into the log", () => {
  const said = "Error performing GET https://a.example.com/c/b?sv=1&sig=secret%2Fvalue&se=2 after 1 retries";
  const { cause } = toEngineError(new Error(said));
  assert.equal((cause as Error).message, said.replace("secret%2Fvalue", ""));
});

test("finds the meaning of a text that repeats a megabyte of what a caller has sent", () => {
  for (const part of ["/_versions", " ", ", /a"]) {
    const { kind, message } = toEngineError(
      new Error(`Invalid input, Schema error: No field named "${part.repeat(1_000_000 / part.length)}".`),
    );
    assert.equal(kind, "TableColumnNotFound", part);
    assert.ok(message.length <= 500, part);
  }
});

test("texts lose the places in the engine's source, in every form", () => {
  const place =
    "/usr/local/cargo/registry/src/index.crates.io-1949cf8c6b5b557f/lance-core-12.0.0/src/schema.rs:209:17";
  for (const end of [
    `, location: ${place}`,
    `, ${place}`,
    ` at ${place}`,
    ` (${place})`,
    `, location: rust/lance/src/dataset.rs:1:2, more`,
    `; C:\\cargo\\registry\\x.rs:1:2`,
    `, location: ${place}\n\nCaused by: x`,
  ])
    for (const [text, name] of [
      [
        "Append with different schema: `c` should have type int32 but type was int64",
        "TableSchemaValidationError",
      ],
      ["Invalid input, the query is wrong", "InvalidInput"],
      ["lance error: Not supported: this", "Unsupported"],
    ] as const) {
      const error = toEngineError(new Error(text + end));
      assert.equal(error.kind, name);
      assert.doesNotMatch(error.message, /\.rs|cargo|registry|location/, text + end);
    }
});
