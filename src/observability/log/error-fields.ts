/** Depth to which causes and nested errors are followed. */
const MAX_DEPTH = 5;
const MAX_ERRORS = 10;

/**
 * Logged fields of an error in addition to its text: names and numbers of systems, and nothing that a message
 * carried.
 */
const FACTS = [
  "code",
  "errno",
  "syscall",
  "address",
  "port",
  "status",
  "statusCode",
  "kind",
  "fault",
] as const;

/**
 * Returns the fields of an error for the log. It contains only the listed fields: libraries attach whole requests to
 * their errors, with the headers and the bytes that were sent (`rawPacket` of a malformed request, `metadata` of a
 * call, `config`).
 *
 * @param redact applied to every text.
 */
export function errorFields(
  error: Error,
  redact: (text: string) => string,
  depth = 0,
): Record<string, unknown> {
  const facts = error as unknown as Readonly<Record<string, unknown>>;
  const fields: Record<string, unknown> = {
    type: error.constructor?.name ?? error.name,
    message: redact(error.message),
    stack: redact(error.stack ?? ""),
  };
  for (const name of FACTS) {
    const value = facts[name];
    if (typeof value === "number") fields[name] = value;
    else if (typeof value === "string") fields[name] = redact(value);
  }
  if (depth === MAX_DEPTH) return fields;
  const { cause } = error;
  if (cause instanceof Error) fields["cause"] = errorFields(cause, redact, depth + 1);
  else if (typeof cause === "string") fields["cause"] = redact(cause);
  if (error instanceof AggregateError) {
    const errors = error.errors.filter((each) => each instanceof Error).slice(0, MAX_ERRORS);
    fields["errors"] = errors.map((each) => errorFields(each, redact, depth + 1));
  }
  return fields;
}
