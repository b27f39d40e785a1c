import { type ErrorName, LanceError } from "../../../namespace/errors.ts";

/**
 * What the engine's failures mean. The engine reports texts and nothing else, so this is the one place that
 * reads them; the first pattern that matches decides.
 */
const MEANINGS: readonly (readonly [pattern: RegExp, name: ErrorName, message?: string])[] = [
  [
    /commit conflict|concurrent (?:transaction|modification|writer)|Too many concurrent writers|Retryable commit|does not have a transaction file/i,
    "ConcurrentModification",
    "another writer changed the table at the same time",
  ],
  [
    /_versions\/[^ ]*\.manifest was not found|_versions\/[^ ]*\.manifest.*not found|version \d+ (?:not found|does not exist)/i,
    "TableVersionNotFound",
    "the version does not exist",
  ],
  [/^Table '[^']*' already exists/, "TableAlreadyExists", "the table already exists"],
  [
    /^Table '[^']*' was not found|Dataset at path \S+ was not found|Not found: \S+\/_versions/i,
    "TableNotFound",
    "the table has no data",
  ],
  [
    /No field named|Column \S+ (?:not found|does not exist)|column \S+ does not exist in schema/i,
    "TableColumnNotFound",
  ],
  [
    /Append with different schema|does not exist in table schema|Cast error|schema mismatch|fields did not match|Cannot cast|contains? null values|non-null(?:able)?/i,
    "TableSchemaValidationError",
  ],
  [
    /Failed to read (?:IPC file|record batch from IPC)|contains NaN|Parser error|Arrow error: Invalid argument/i,
    "InvalidInput",
  ],
  [
    /^(?:Failed to execute query stream: GenericFailure, )?Invalid input|sql parser error|Invalid distance type|More than one vector column|Invalid user input|Error during planning|type_coercion/i,
    "InvalidInput",
  ],
];

/**
 * The error that a failure of the engine stands for; what is unknown becomes Internal, with the cause.
 *
 * Paths and the engine's own source places are left out of the message.
 */
export function toEngineError(thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  for (const [pattern, name, message] of MEANINGS) {
    if (pattern.test(text)) return new LanceError(name, message ?? summary(text), { cause: thrown });
  }
  return new LanceError("Internal", "the engine failed; the server's log has it under this request's id", {
    cause: thrown,
  });
}

/** Runs engine work with its failures as {@link LanceError}. */
export async function engineCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toEngineError(error);
  }
}

/** The first sentence of a text, without the wrappings of the layers it came through. */
function summary(text: string): string {
  const [first = ""] = text.split(/, \/\S+\.rs:\d|\s*Caused by:|\n/);
  return first
    .replace(/^Failed to execute query stream: GenericFailure, /, "")
    .replace(/^(?:lance error: |Invalid input, |LanceError\(\w+\): |Schema error: )+/, "")
    .replace(/, (?:_rowid|_rowaddr|_rowoffset|_row_\w+)/g, "")
    .slice(0, 500);
}
