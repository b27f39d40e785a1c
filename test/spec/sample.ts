import { type Schema, schemaAt } from "./document.ts";
import { spellings } from "./shape.ts";

/** Deep enough to reach every schema, where one contains itself. */
const MAX_DEPTH = 6;

/** Objects that take exactly one of their properties. */
const ONE_OF_MANY = new Set(["CommitTableOperation", "CommitTableResult", "AlterTransactionAction"]);

/** A JSON value that a schema describes, with every property, down to a depth. */
export function sampleOf(schema: Schema, depth = 0): unknown {
  switch (schema.type) {
    case "string":
      if (schema.format === "date-time") return "2026-01-02T03:04:05Z";
      return spellings(schema)[0] ?? "text";
    case "integer":
      return schema.format === "int64" ? Number.MAX_SAFE_INTEGER : 7;
    case "number":
      return 0.5;
    case "boolean":
      return true;
    case "array":
      return sampleList(schema, schemaAt(schema.items), depth + 1);
    default:
      return sampleObject(schema, depth);
  }
}

function sampleList(schema: Schema, item: Schema, depth: number): unknown[] {
  if (!ONE_OF_MANY.has(item.name ?? "")) {
    return Array.from({ length: schema.minItems ?? 1 }, () => sampleOf(item, depth));
  }
  const whole = sampleOf(item, depth) as Record<string, unknown>;
  return Object.entries(whole).map(([name, value]) => ({ [name]: value }));
}

function sampleObject(schema: Schema, depth: number): unknown {
  if (typeof schema.additionalProperties === "object") {
    return { "a key": sampleOf(schemaAt(schema.additionalProperties), depth + 1) };
  }
  const members = Object.entries(schema.properties ?? {})
    .filter(([name]) => depth < MAX_DEPTH || schema.required?.includes(name))
    .map(([name, node]) => [name, sampleOf(schemaAt(node), depth + 1)]);
  return Object.fromEntries(members);
}
