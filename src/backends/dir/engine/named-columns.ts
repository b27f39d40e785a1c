import type { ArrowField } from "../../../arrow/schema.ts";
import { tokenizeSql } from "./sql-tokens.ts";

/** Returns the columns that SQL expressions may read: those whose names, in whatever case, are among their words and quoted names. */
export function namedColumns(expressions: readonly string[], fields: readonly ArrowField[]): ArrowField[] {
  const names = new Set<string>();
  for (const expression of expressions)
    for (const { kind, text } of tokenizeSql(expression))
      if (kind !== "number" && kind !== "symbol") names.add(withoutQuotes(text).toLowerCase());
  return fields.filter(({ name }) => names.has(name.toLowerCase()));
}

function withoutQuotes(text: string): string {
  return text.replace(/^(["`])(.*)\1$/s, "$2");
}
