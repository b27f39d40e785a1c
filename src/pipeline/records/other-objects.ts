import { type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import {
  type CreateMaterializedViewRequest,
  CreateMaterializedViewRequestSchema,
} from "../../gen/lance/namespace/v1/view_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { agreedIdentifier, type Identifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { compileWalk, type Fields, type Walk } from "../call/scope.ts";

/** Fields that begin the identifier of an object, and the field beside them with its last name. */
const PLACES: Readonly<Record<string, string | undefined>> = {
  id: undefined,
  new_namespace_id: "newTableName",
};
const NAMES: ReadonlySet<string> = new Set(Object.keys(PLACES));

/** Fields beside an identifier by which a request names the directory of a table, or the table itself. */
const LOCATIONS = ["location", "sourceLocation"] as const;

/** The parts of a URI that may be a credential: the user before its host, and its query. */
const CREDENTIALS = /(?<=^[a-z][a-z0-9+.-]*:\/\/)[^/?]*@|\?.*$/gis;

const walks = new Map<DescMessage, Walk | undefined>();

/**
 * Returns the objects that a request names in addition to the object of the call, as far as they can be read. A location is a single
 * name, as the request writes it.
 *
 * @param most number of objects that are read; each further one is only counted, because a commit may have 100,000 with mistakes.
 * @param backend tells which tables a new view reads. Default: nothing tells.
 */
export function otherObjects(
  { method, id }: Call,
  request: OperationRequest,
  most: number,
  backend?: Pick<Backend, "sourcesOf">,
): readonly Identifier[] {
  const message: Message = request.message;
  if (!walks.has(method.input)) walks.set(method.input, compileWalk(method.input, NAMES));
  const found: Identifier[] = [];
  walks.get(method.input)?.(message, (names, field, holder) => {
    const isOfCall = field === "id" && holder === message;
    if (!isOfCall)
      found.push(found.length < most ? identifierOf(names, field, holder, message as Fields, id) : names);
    if (field === "id") found.push(...locationsIn(holder));
    return names as string[];
  });
  return isMessage(message, CreateMaterializedViewRequestSchema)
    ? [...found, ...sourcesOf(message, backend)]
    : found;
}

function identifierOf(
  names: Identifier,
  field: string,
  holder: Fields,
  message: Fields,
  ofCall: Identifier,
): Identifier {
  const lastField = PLACES[field];
  if (lastField === undefined) return namedBy(names, holder, message);
  const namespace = names.length === 0 ? ofCall.slice(0, -1) : names;
  return [...namespace, String(holder[lastField])];
}

/** Operations of a commit may name their object by a single text, with a delimiter that the caller chooses. */
function namedBy(names: Identifier, holder: Fields, message: Fields): Identifier {
  const { identifier, delimiter = message["delimiter"] } = holder as {
    identifier?: string;
    delimiter?: string;
  };
  try {
    return agreedIdentifier(names, identifier, delimiter as string | undefined);
  } catch {
    // The call is refused for it.
    return names.length === 0 ? [String(identifier)] : names;
  }
}

function locationsIn(holder: Fields): Identifier[] {
  return LOCATIONS.flatMap((field) => {
    const value = holder[field];
    return typeof value === "string" && value !== "" ? [[value.replaceAll(CREDENTIALS, "")]] : [];
  });
}

function sourcesOf(
  view: CreateMaterializedViewRequest,
  backend: Pick<Backend, "sourcesOf"> | undefined,
): readonly Identifier[] {
  try {
    return backend?.sourcesOf?.(view) ?? [];
  } catch {
    // The backend refuses the view.
    return [];
  }
}
