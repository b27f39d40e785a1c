import { LanceError } from "../errors.ts";

/**
 * The path templates of `google.api.http`, without the parts that no route here needs (`**` and verbs). The grammar:
 *
 *     Template  = "/" Segments ;
 *     Segments  = Segment { "/" Segment } ;
 *     Segment   = "*" | LITERAL | Variable ;
 *     Variable  = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *
 * `*` matches one segment. `{field}` is short for `{field=*}`.
 */

/** A segment of a template: a literal text, or a wildcard. */
export type TemplateSegment = { readonly literal: string } | "*";

/** The part of a path to which a field is bound. */
export interface TemplateVariable {
  /** Name of the field, or names joined by ".". */
  readonly field: string;
  /** Index of the first segment. */
  readonly start: number;
  /** Index after the last segment. */
  readonly end: number;
}

/** A parsed path template. */
export interface Template {
  readonly source: string;
  readonly segments: readonly TemplateSegment[];
  readonly variables: readonly TemplateVariable[];
}

const LITERAL = /[A-Za-z0-9\-._~!$&'()+,;=@%]+/y;
const IDENT = /[A-Za-z_][A-Za-z0-9_]*/y;

/**
 * Parses a path template.
 *
 * @throws Error with the position and what was expected.
 */
export function parseTemplate(source: string): Template {
  let at = 0;
  const segments: TemplateSegment[] = [];
  const variables: TemplateVariable[] = [];

  expect("/");
  parseSegments(false);
  if (at < source.length) throw failure("the end");
  return { source, segments, variables };

  function parseSegments(inVariable: boolean): void {
    do parseSegment(inVariable);
    while (take("/"));
  }

  function parseSegment(inVariable: boolean): void {
    if (take("*")) segments.push("*");
    else if (source[at] === "{" && !inVariable) parseVariable();
    else segments.push({ literal: scan(LITERAL, "a segment") });
  }

  function parseVariable(): void {
    expect("{");
    const start = segments.length;
    let field = scan(IDENT, "a field name");
    while (take(".")) field += `.${scan(IDENT, "a field name")}`;
    if (variables.some((variable) => variable.field === field)) throw failure(`no second "${field}"`);
    if (take("=")) parseSegments(true);
    else segments.push("*");
    expect("}");
    variables.push({ field, start, end: segments.length });
  }

  function scan(pattern: RegExp, what: string): string {
    pattern.lastIndex = at;
    const text = pattern.exec(source)?.[0];
    if (text === undefined) throw failure(what);
    at += text.length;
    return text;
  }

  function take(text: string): boolean {
    if (!source.startsWith(text, at)) return false;
    at += text.length;
    return true;
  }

  function expect(text: string): void {
    if (!take(text)) throw failure(JSON.stringify(text));
  }

  function failure(expected: string): Error {
    return new Error(`path template "${source}": expected ${expected} at position ${at}`);
  }
}

const SEPARATOR = String.raw`(?:[/\\]|%2f|%5c)`;

/** A segment of dots, also percent-encoded, and also with the parameters that some servers cut off (`..;a=b`). */
const DOT_SEGMENT = new RegExp(`(?:^|${SEPARATOR})(?:\\.|%2e)+(?:;.*?)?(?:$|${SEPARATOR})`, "is");

/**
 * Whether a value, once it is in a path, contains a segment that URL parsers and proxies fold away: `/index/../drop`
 * becomes `/drop`, which is another operation (docs/adr/0037).
 */
export function hasDotSegment(value: string): boolean {
  // Most values have neither character, and every call has several values.
  return (value.includes(".") || value.includes("%")) && DOT_SEGMENT.test(value);
}

/**
 * Checks a value that a path carries.
 *
 * @throws LanceError InvalidInput for a value with a segment of dots.
 */
export function checkPathValue(value: string, field: string): void {
  if (!hasDotSegment(value)) return;
  throw new LanceError(
    "InvalidInput",
    `field "${field}" must not be dots alone, or have such a part: ${JSON.stringify(value)}`,
  );
}
