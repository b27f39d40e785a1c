/**
 * The path templates of `google.api.http`. The grammar:
 *
 *     Template  = "/" Segments [ Verb ] ;
 *     Segments  = Segment { "/" Segment } ;
 *     Segment   = "*" | "**" | LITERAL | Variable ;
 *     Variable  = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *     Verb      = ":" LITERAL ;
 *
 * `*` matches one segment and `**` the rest of the path, so `**` can only come last. `{field}` is short for
 * `{field=*}`.
 */

/** A segment of a template: a literal text, or a wildcard. */
export type TemplateSegment = { readonly literal: string } | "*" | "**";

/** The part of a path to which a field is bound. */
export interface TemplateVariable {
  /** Name of the field, or names joined by ".". */
  readonly field: string;
  /** Index of the first segment. */
  readonly start: number;
  /** Index after the last segment; undefined if the variable ends with `**`. */
  readonly end: number | undefined;
}

/** A parsed path template. */
export interface Template {
  readonly source: string;
  readonly segments: readonly TemplateSegment[];
  readonly variables: readonly TemplateVariable[];
  /** The verb without its colon; empty if there is none. */
  readonly verb: string;
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
  const verb = take(":") ? scan(LITERAL, "a verb") : "";
  if (at < source.length) throw failure("the end");
  return { source, segments, variables, verb };

  function parseSegments(inVariable: boolean): void {
    do parseSegment(inVariable);
    while (take("/"));
  }

  function parseSegment(inVariable: boolean): void {
    if (segments.at(-1) === "**") throw failure('nothing after "**"');
    if (take("**")) segments.push("**");
    else if (take("*")) segments.push("*");
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
    variables.push({ field, start, end: segments.at(-1) === "**" ? undefined : segments.length });
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

/**
 * Returns the path of a template, with the values of its variables percent-encoded. In a variable of several segments
 * the slashes stay.
 *
 * @throws Error if a variable has no value, or a template has a wildcard outside variables.
 */
export function formatTemplate(template: Template, values: Readonly<Record<string, string>>): string {
  let path = "";
  for (let index = 0; index < template.segments.length; ) {
    const variable = template.variables.find((candidate) => candidate.start === index);
    const segment = template.segments[index];
    if (variable !== undefined) {
      const value = values[variable.field];
      if (value === undefined) throw new Error(`path template "${template.source}": no ${variable.field}`);
      const single = variable.end === variable.start + 1;
      path += `/${single ? encodeURIComponent(value) : value.split("/").map(encodeURIComponent).join("/")}`;
      index = variable.end ?? template.segments.length;
    } else if (typeof segment === "object") {
      path += `/${segment.literal}`;
      index++;
    } else {
      throw new Error(`path template "${template.source}": a wildcard has no value`);
    }
  }
  return template.verb === "" ? path : `${path}:${template.verb}`;
}
