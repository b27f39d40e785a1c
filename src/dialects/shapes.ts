import { LanceError } from "../namespace/errors.ts";
import { isJsonObject } from "../runtime/json.ts";
import type { FieldTexts } from "./dialect.ts";

/** Reads fields under other names; the specification's name overrides the client's. */
export function renamed(names: Readonly<Record<string, string>>): (json: unknown) => unknown {
  return (json) => {
    if (!isJsonObject(json)) return json;
    const renamedJson: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(json)) {
      const ours = Object.hasOwn(names, name) ? (names[name] as string) : name;
      if (ours === name || json[ours] === undefined) renamedJson[ours] = value;
    }
    return renamedJson;
  };
}

/** Reason to refuse a field that newer clients send. */
const NEWER = "a field of newer servers, and would be without effect here";

/**
 * Reads fields as they are, and refuses those that newer clients send and that would be without effect.
 *
 * @param names the fields, or the fields with the reason for each: what it is
 * @throws LanceError Unsupported
 */
export function without(
  names: readonly string[] | Readonly<Record<string, string>>,
): (json: unknown) => unknown {
  const reasons = Array.isArray(names) ? names.map((name) => [name, NEWER] as const) : Object.entries(names);
  return (json) => {
    const found = isJsonObject(json) ? reasons.find(([name]) => (json[name] ?? null) !== null) : undefined;
    if (found === undefined) return json;
    const [name, reason] = found;
    throw new LanceError("Unsupported", `${name} is ${reason}`);
  };
}

/** Reads null or a missing field as a value. */
export function absentAs(name: string, value: unknown): (json: unknown) => unknown {
  return (json) => (isJsonObject(json) ? { ...json, [name]: json[name] ?? value } : json);
}

/** Writes the value of a field also under further names. */
export function alsoNamed(names: Readonly<Record<string, string>>): (fields: FieldTexts) => FieldTexts {
  return (fields) => {
    const all: Record<string, string> = { ...fields };
    for (const [name, also] of Object.entries(names)) {
      const text = fields[name];
      if (text !== undefined) all[also] = text;
    }
    return all;
  };
}

/** Writes a field as the whole answer. */
export function bare(name: string): (fields: FieldTexts) => string {
  return (fields) => fields[name] ?? "null";
}

/** Fills in the JSON of omitted fields. */
export function defaulted(texts: FieldTexts): (fields: FieldTexts) => FieldTexts {
  return (fields) => ({ ...texts, ...fields });
}

/** Limits an integer field to the largest value that its readers accept. */
export function atMost(name: string, largest: number): (fields: FieldTexts) => FieldTexts {
  return (fields) => {
    const text = fields[name];
    return text === undefined || Number(text) <= largest ? fields : { ...fields, [name]: String(largest) };
  };
}

/**
 * Reads a map of objects that is the bare value of a field. A wrapped map is an object whose member of that name
 * contains only objects; an object of a bare map that has that name contains a plain value.
 */
export function wrappedUnless(name: string): (json: unknown) => unknown {
  return (json) => {
    if (!isJsonObject(json)) return json;
    const inner = json[name];
    const wrapped =
      name in json
        ? isJsonObject(inner) && Object.values(inner).every(isJsonObject)
        : !Object.values(json).every(isJsonObject);
    return wrapped ? json : { [name]: json };
  };
}
