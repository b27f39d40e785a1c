import { LanceError } from "../namespace/errors.ts";

/** A value that does not fit its field. The path grows as the error passes outwards through containers. */
export class FieldError extends Error {
  /** The problem, as the predicate of a sentence: `must be a string`. */
  readonly problem: string;
  /** Names and indexes from the outermost field inwards. */
  readonly path: (string | number)[] = [];

  constructor(problem: string) {
    super(problem);
    this.name = "FieldError";
    this.problem = problem;
  }
}

/** An integer that a JavaScript number cannot hold exactly: its digits must be read from the text. */
export class InexactNumberError extends FieldError {}

/** Adds the container's key to an error's path, and returns the error for throwing. */
export function within(key: string | number, thrown: unknown): unknown {
  if (thrown instanceof FieldError) thrown.path.unshift(key);
  return thrown;
}

/**
 * Returns the error that a client sees for a value that does not fit.
 *
 * @param subject name of a path in the text, for example `field`.
 * @param whole name of the value if the path is empty.
 */
export function toInvalidInput(thrown: unknown, subject: string, whole: string): unknown {
  if (!(thrown instanceof FieldError)) return thrown;
  const [first, ...rest] = thrown.path;
  if (first === undefined) return new LanceError("InvalidInput", `${whole} ${thrown.problem}`);
  const path = rest.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${key}`),
    typeof first === "number" ? `[${first}]` : first,
  );
  return new LanceError("InvalidInput", `${subject} ${JSON.stringify(path)} ${thrown.problem}`);
}
