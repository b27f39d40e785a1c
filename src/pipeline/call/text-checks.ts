import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { not_blank } from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { optionOf } from "../../namespace/option.ts";
import type { Interceptor } from "./interceptor.ts";

/** Checks the text of a field; it throws a LanceError for a text that it refuses. */
type TextCheck = (text: string) => void;

type Fields = Record<string, unknown>;
type FieldCheck = (message: Fields) => void;

/**
 * Creates a check of texts in messages. The checks of a type are compiled once. They leave out maps, which have the names and values of
 * users, and Google's own types.
 *
 * @param checkOf returns the check of a field's texts; undefined for a field without one
 */
export function createTextChecks(
  checkOf: (field: DescField) => TextCheck | undefined,
): (type: DescMessage, message: Message) => void {
  const compiled = new WeakMap<DescMessage, readonly FieldCheck[]>();
  const unfinished = new Set<DescMessage>();

  function checksOf(type: DescMessage): readonly FieldCheck[] {
    const known = compiled.get(type);
    if (known !== undefined) return known;
    const checks: FieldCheck[] = [];
    compiled.set(type, checks);
    unfinished.add(type);
    for (const field of type.fields) {
      const check = fieldCheck(field);
      if (check !== undefined) checks.push(check);
    }
    unfinished.delete(type);
    return checks;
  }

  function fieldCheck(field: DescField): FieldCheck | undefined {
    const each = field.fieldKind === "map" ? undefined : valueCheck(field);
    if (each === undefined) return undefined;
    const { localName } = field;
    const oneof = field.oneof?.localName;
    if (field.fieldKind === "list") {
      return (message) => {
        for (const item of message[localName] as readonly unknown[]) each(item);
      };
    }
    return (message) => {
      const chosen = oneof === undefined ? undefined : (message[oneof] as { case?: string; value?: unknown });
      const value = oneof === undefined ? message[localName] : chosen?.case === localName && chosen.value;
      if (value !== undefined && value !== false) each(value);
    };
  }

  function valueCheck(field: DescField): ((value: unknown) => void) | undefined {
    if (field.message === undefined) return checkOf(field) as ((value: unknown) => void) | undefined;
    if (field.message.typeName.startsWith("google.")) return undefined;
    const checks = checksOf(field.message);
    // A type in itself has its checks later.
    if (checks.length === 0 && !unfinished.has(field.message)) return undefined;
    return (value) => {
      for (const check of checks) check(value as Fields);
    };
  }

  return (type, message) => {
    for (const check of checksOf(type)) check(message as Message & Fields);
  };
}

/**
 * Refuses a request with a blank text in a field with the option `not_blank`: a condition that selects nothing must not become one that
 * selects everything, nor a branch without a name the main branch.
 *
 * @throws LanceError InvalidInput
 */
export const checkBlankTexts: (type: DescMessage, request: Message) => void = createTextChecks((field) => {
  if (!optionOf(field, not_blank)) return undefined;
  return (text) => {
    if (text.trim() === "") {
      throw new LanceError("InvalidInput", `${field.name} must not be blank; omit it instead`);
    }
  };
});

/** Refuses blank texts as {@link checkBlankTexts} does. */
export const refuseBlankTexts: Interceptor = (call, request, next) => {
  checkBlankTexts(call.method.input, request.message);
  return next(call, request);
};
