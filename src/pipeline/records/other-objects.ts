import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { compileWalk, type Fields, type Walk } from "../call/scope.ts";

/** Fields that begin the identifier of an object, and the field beside them with its last name. */
const PLACES: Readonly<Record<string, string | undefined>> = {
  id: undefined,
  new_namespace_id: "newTableName",
};
const NAMES: ReadonlySet<string> = new Set(Object.keys(PLACES));

const walks = new Map<DescMessage, Walk | undefined>();

/** Returns the objects that a request names in addition to the object of the call, as far as they can be read. */
export function otherObjects({ method, id }: Call, message: Message): readonly Identifier[] {
  if (!walks.has(method.input)) walks.set(method.input, compileWalk(method.input, NAMES));
  const found: Identifier[] = [];
  walks.get(method.input)?.(message, (names, field, holder) => {
    const isOfCall = field === "id" && holder === message;
    if (!isOfCall) found.push(identifierOf(names, field, holder, id));
    return names as string[];
  });
  return found;
}

function identifierOf(names: Identifier, field: string, holder: Fields, ofCall: Identifier): Identifier {
  const lastField = PLACES[field];
  if (lastField === undefined) {
    // Operations of a commit may name their object by a single text.
    const text = holder["identifier"];
    return names.length === 0 && typeof text === "string" ? [text] : names;
  }
  const namespace = names.length === 0 ? ofCall.slice(0, -1) : names;
  return [...namespace, String(holder[lastField])];
}
