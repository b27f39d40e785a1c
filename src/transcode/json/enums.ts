import type { DescEnum } from "@bufbuild/protobuf";
import { rest_value } from "../../gen/lance/namespace/v1/options_pb.ts";
import { optionOf } from "../../namespace/option.ts";
import { FieldError } from "../field-error.ts";
import type { DecodeScalar, EncodeScalar } from "./scalars.ts";

/** Returns the spelling that the REST API writes: its own, or the value's name in PascalCase without the prefix. */
export function restSpelling(descriptor: DescEnum, value: DescEnum["values"][number]): string {
  return optionOf(value, rest_value) || toPascalCase(withoutPrefix(descriptor, value.name));
}

/**
 * Returns the reader of an enum. It accepts all spellings in use, ignoring case, `_`, `-` and surrounding quotes,
 * because clients differ in all of these. It throws FieldError with the known spellings.
 *
 * @param lenient whether an unknown text is read as the value with the number 0.
 */
export function enumDecoder(descriptor: DescEnum, lenient = false): DecodeScalar {
  const numbers = new Map<string, number>();
  const spellings: string[] = [];
  for (const value of descriptor.values) {
    const spelling = restSpelling(descriptor, value);
    for (const name of [spelling, value.name, withoutPrefix(descriptor, value.name)]) {
      const known = numbers.get(normalize(name));
      if (known !== undefined && known !== value.number) {
        throw new Error(`${descriptor.typeName}: "${name}" stands for two values`);
      }
      numbers.set(normalize(name), value.number);
    }
    if (value.number !== 0 || !value.name.endsWith("_UNSPECIFIED")) spellings.push(spelling);
  }
  const problem = `must be one of ${spellings.join(", ")}`;
  return (json) => {
    const number =
      typeof json === "string" ? (numbers.get(normalize(json)) ?? (lenient ? 0 : undefined)) : undefined;
    if (number === undefined) throw new FieldError(problem);
    return number;
  };
}

/** Returns the writer of an enum. It writes a number without a name, which a newer peer may have sent, unchanged. */
export function enumEncoder(descriptor: DescEnum): EncodeScalar {
  const texts = new Map(
    descriptor.values.map((value) => [value.number, JSON.stringify(restSpelling(descriptor, value))]),
  );
  return (value) => texts.get(value as number) ?? String(value);
}

function withoutPrefix(descriptor: DescEnum, name: string): string {
  const prefix = descriptor.sharedPrefix ?? "";
  return name.toLowerCase().startsWith(prefix.toLowerCase()) ? name.slice(prefix.length) : name;
}

function toPascalCase(name: string): string {
  return name
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join("");
}

function normalize(spelling: string): string {
  return spelling.replaceAll(/[_\-"']/g, "").toLowerCase();
}
