import { randomUUID } from "node:crypto";
import { type ErrorName, IN_LOG, type LanceError } from "../../../../namespace/errors.ts";
import { putNewest } from "../../../../runtime/collections.ts";

/** The error that a text of the engine represents. `$1` in the message is the pattern's first group. Default of the message: the text's first sentence. */
export type Meaning = readonly [pattern: RegExp, name: ErrorName, message?: string];

/** The meaning of texts without another one. */
export const UNKNOWN: Meaning = [/^/, "Internal", `the engine failed; ${IN_LOG}`];

/** Failures of the storage, whose texts may appear within any other; and of bodies, whose texts are like those of damage. */
export const FIRST_MEANINGS: readonly Meaning[] = [
  [
    /Commit result for version \d+ is unknown|Operation timed out: Commit timed out/,
    "OutcomeUnknown",
    "the storage of the table failed during a commit, which may be stored or not; look before you repeat it",
  ],
  [
    /SlowDown|Please reduce your request rate|429 Too Many Requests|503 (?:Service Unavailable|Slow Down)|ServerBusy/,
    "Throttling",
    "the storage of the table asks for fewer requests",
  ],
  [
    /No space left on device|Disk quota exceeded|os error (?:28|122)\b/,
    "ServiceUnavailable",
    "the storage of the table is full",
  ],
  [/Read-only file system|os error 30\b/, "Unsupported", "the storage of the table is read-only"],
  [
    /Permission denied|os error (?:1|13)\b|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|(?:Expired|Invalid)Token|(?:401 Unauthorized|403 Forbidden)|AuthenticationFailed/,
    "ServiceUnavailable",
    "the storage of the table denies access to the server",
  ],
  [/Too many open files|os error (?:23|24)\b/, "ServiceUnavailable", "the server has too many open files"],
  [/NoSuchBucket|ContainerNotFound/, "ServiceUnavailable", "the bucket of the table does not exist"],
  [
    /error sending request|HTTP error: (?:request or response body error|operation timed out)|after \d+ retries|Connection refused|Error performing token request|os error (?:5|104|111)\b|\b50[0234] [A-Z][a-z]/,
    "ServiceUnavailable",
    "the storage of the table does not answer",
  ],
  [
    // Failures of input and output have other texts; these are of buffers that cannot be unpacked.
    /^Arrow error: (?:(?:Io|Ipc) error: |Not yet implemented: compression type )/,
    "InvalidInput",
    "the Arrow body is broken, or a compressed buffer in it",
  ],
];

/** All other failures except damage. The first pattern that matches decides. */
export const MEANINGS: readonly Meaning[] = [
  [
    /sql parser error: Expected: \), found: (.+?)\)?(?:,.*|)$/s,
    "InvalidInput",
    "the SQL text is refused: it goes on with $1 where its expression, or a part in brackets, is complete; an operator such as AND may be missing",
  ],
  [
    /\btask \d+ panicked with message .*Found unmasked nulls for non-nullable/,
    "TableSchemaValidationError",
    "a non-nullable struct field contains null",
  ],
  [/\btask \d+ panicked with message/, UNKNOWN[1], UNKNOWN[2]],
  [
    /commit conflict|Incompatible transaction: |concurrent (?:transaction|modification|writer)|Too many concurrent writers|Retryable commit|does not have a transaction file/i,
    "ConcurrentModification",
    "another writer changed the table at the same time",
  ],
  [
    /_versions\/[^ ]*\.manifest was not found|_versions\/[^ ]*\.manifest.*not found|Version not found error: |version \d+ (?:not found|does not exist)/i,
    "TableVersionNotFound",
    "the version does not exist",
  ],
  [
    /Clone operation should not enter/,
    "TableBranchAlreadyExists",
    "the branch, or what a failed creation left of it, is there already",
  ],
  [/Ref not found error: Branch/, "TableBranchNotFound"],
  [/Ref not found error: tag/, "TableTagNotFound"],
  [/Ref conflict error: tag/, "TableTagAlreadyExists"],
  [/Ref is invalid: /, "InvalidInput"],
  [
    /Ref conflict error: Branch/,
    "InvalidInput",
    "other branches begin on this one, or tags name its versions; delete them first",
  ],
  [
    /^Table '[^']*' already exists|Dataset already exists: /,
    "TableAlreadyExists",
    "the table already exists",
  ],
  [
    /^Table '[^']*' was not found|Dataset at path \S+ was not found|Not found: \S+\/_versions/i,
    "TableNotFound",
    "the table has no data",
  ],
  [/merge insert timed out|Query timeout after|Timeout error: /, "DeadlineExceeded"],
  [/^Job(?: \S+)? was cancelled/, "Cancelled"],
  [/Write rejected by backpressure: /, "Throttling", "the log of the table is full"],
  [
    /Writer fenced \(peer claimed epoch\)/,
    "ConcurrentModification",
    "another server writes the log of the table",
  ],
  [
    /Spill disk cap of \d+ bytes exceeded/,
    "ServiceUnavailable",
    "the work of the engine needs more room for temporary files than it may use",
  ],
  [
    /Invalid directory path: |Failed to load (?:Jieba|tokenizer config)|Failed to initialize default tokenizer/,
    "InvalidInput",
    "the server has no usable language model of this base tokenizer in the directory LANCE_LANGUAGE_MODEL_HOME",
  ],
  [
    /FTS prewarm completed without publishing query-ready/,
    "PayloadTooLarge",
    "the full-text index does not fit into the engine's cache of indices, whose size --index-cache-size sets",
  ],
  [/Cleanup error: Error encountered while parsing (?=lance\.auto_cleanup)/, "InvalidTableState"],
  [
    /LanceError\(Index\): (?:Index with id \S+ does not exist|Index [Mm]etadata )/,
    "TableIndexNotFound",
    "the index does not exist",
  ],
  [
    /No field named|Column \S+ (?:not found|does not exist)|column \S+ does not exist in schema|field path '[^']*' does not exist/i,
    "TableColumnNotFound",
  ],
  [
    /Unknown Lance storage version/,
    "Unsupported",
    "the table has a data format that is newer than the engine of this version",
  ],
  [
    /LanceError\(Schema\): Unsupported (?:logical|dictionary|decimal|timestamp) type/,
    "Unsupported",
    "the table has a column of a type that the engine of this version does not know",
  ],
  [/Direct updates to column '[^']*' containing blob/, "Unsupported"],
  [/Index name '[^']*' already exists/, "TableIndexAlreadyExists"],
  [/Lance index not found|^Index '[^']*' was not found/, "TableIndexNotFound", "the index does not exist"],
  [
    /Field path `[^`]*` not found in schema|Field '[^']*' not found|unknown column '|Column .{1,300}? (?:does not exist in the dataset|was not found)/,
    "TableColumnNotFound",
  ],
  [
    /Column .{1,300}? already exists|Duplicate field name|cannot be made non-nullable/,
    "TableSchemaValidationError",
  ],
  [
    /^Schema Error: |Phrase queries cannot be used with|Unprocessable|LanceError\(Index\)|Invalid data type/,
    "InvalidInput",
  ],
  [/cannot make a column non-nullable and cast/, "InvalidInput"],
  [/LanceError\(Schema\)|Invalid expression for column|Cannot drop all columns/, "InvalidInput"],
  [
    /Creating empty vector indices/,
    "InvalidTableState",
    "the table has no rows, from which a vector index could learn",
  ],
  [
    /Row format support not yet implemented/,
    "InvalidInput",
    "the engine cannot order by a column of this type",
  ],
  [/^not yet implemented$/, "InvalidInput", "the engine cannot evaluate the expression"],
  [/Divide by zero/i, "InvalidInput", "the expression divides by zero"],
  [/Error applying filter expression to batch/, "InvalidInput"],
  [
    /does not support logical expression (?:AggregateFunction|WindowFunction)/,
    "InvalidInput",
    "an expression over single rows cannot have aggregate or window functions",
  ],
  [/unless an INVERTED index has been created/, "InvalidInput"],
  [/Levenshtein automaton exceeds/, "InvalidInput", "the fuzziness is too large for the terms"],
  [
    /Append with different schema|does not exist in table schema|Cast error|LanceError\(Arrow\): Schema error: |schema mismatch|fields did not match|Cannot cast|contains? null values|non-null(?:able)?/i,
    "TableSchemaValidationError",
  ],
  [
    /Failed to read (?:IPC file|record batch from IPC)|contains NaN|Parser error|Arrow error: Invalid argument/i,
    "InvalidInput",
  ],
  [
    /Resources exhausted: /,
    "InvalidInput",
    "the operation needs more memory than the engine may use; reduce the rows, columns or vectors of the request",
  ],
  [/Arithmetic overflow: /, "InvalidInput"],
  [/not supported: /i, "Unsupported"],
  [
    // The last is the engine's text for a typed literal without a value, as in "DATE NULL".
    /This issue was likely caused by a bug in DataFusion's code|Expected option to have value|Scans must request at least one column/,
    "InvalidInput",
    "the engine cannot evaluate the expression",
  ],
  [
    /Query Execution error: Execution error: |LanceError\(Arrow\): (?:Invalid argument|Compute) error: |This feature is not implemented: |regex parse error/,
    "InvalidInput",
  ],
  [
    /^Invalid input|sql parser error|Invalid distance type|More than one vector column|Invalid user input|Error during planning|type_coercion/i,
    "InvalidInput",
  ],
];

/** Errors that the engine was told, by ids. */
const relayed = new Map<string, LanceError>();

/** Maximum number of errors that are remembered: the engine repeats them at once, if at all. */
const MAX_RELAYED = 1_000;

/** Returns a text that represents an error. The engine repeats it, among others, when it fails with the error. */
export function relay(error: LanceError): string {
  const id = randomUUID();
  putNewest(relayed, id, error, MAX_RELAYED);
  return `relayed failure ${id}`;
}

/** Returns the error that a text of the engine represents; undefined for any other text. */
export function relayedError(text: string): LanceError | undefined {
  const id = /relayed failure ([0-9a-f-]{36})/.exec(text)?.[1];
  return id === undefined ? undefined : relayed.get(id);
}
