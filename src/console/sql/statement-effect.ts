/** Effect of a statement on tables: none, an addition, or a change that loses something. */
export type Effect = "reads" | "adds" | "changes";

const SPACE_AND_COMMENTS = /^(?:\s+|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\/)*/;

/** Tells the effect of a statement by its first words, for a question. The gateway decides what a statement does. */
export function effectOf(statement: string): Effect {
  const text = statement.replace(SPACE_AND_COMMENTS, "");
  if (/^(?:UPDATE|DELETE|DROP)\b|^CREATE\s+OR\s+REPLACE\b/i.test(text)) return "changes";
  return /^(?:INSERT|CREATE)\b/i.test(text) ? "adds" : "reads";
}
