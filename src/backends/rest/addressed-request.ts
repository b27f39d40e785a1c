import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { DEFAULT_DELIMITER, type Identifier, joinIdentifier } from "../../namespace/identifier.ts";

interface Addressed extends Message {
  id?: readonly string[];
  identifier?: string;
  delimiter?: string;
}

/**
 * Returns a function that writes the resolved object into the request, in the upstream's spelling. It throws LanceError InvalidInput for a
 * name that the delimiter of the upstream would split.
 */
export function createAddresser(
  { input }: DescMethod,
  delimiter: string,
): (request: Message, call: Call) => void {
  const names = new Set(input.fields.map(({ localName }) => localName));
  if (!names.has("identifier")) {
    // The client's delimiter joins the names in the answer.
    return (request: Addressed) => {
      request.delimiter ??= DEFAULT_DELIMITER;
    };
  }
  return (request: Addressed, { id }) => {
    const identifier = joinIdentifier(id, delimiter);
    // A name may have the delimiter in it, or make one with its neighbor: `a~` and `b` joined with `~~`.
    if (delimiter !== DEFAULT_DELIMITER && !isSplitInto(identifier, delimiter, id)) {
      const text = JSON.stringify(delimiter);
      throw new LanceError(
        "InvalidInput",
        `names joined with ${text}, as the upstream catalog has them, would be split into others`,
      );
    }
    request.id = id;
    request.identifier = identifier;
    request.delimiter = delimiter;
  };
}

/** Whether an identifier, split at a delimiter, has the given names; the root is the delimiter itself. */
function isSplitInto(identifier: string, delimiter: string, names: Identifier): boolean {
  if (names.length === 0) return true;
  const split = identifier.split(delimiter);
  return split.length === names.length && split.every((name, index) => name === names[index]);
}
