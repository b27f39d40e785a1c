import type { DescField, DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { LanceError } from "../../namespace/errors.ts";
import { agreedIdentifier, type Identifier } from "../../namespace/identifier.ts";

/** Changes between names in a database and names that begin with its own, in the messages of a method. */
export interface Scope {
  /** Returns the first name of the first object that a request names. */
  find(request: Message): string | undefined;
  /**
   * Removes the name of the database from all names in a request.
   *
   * @throws LanceError InvalidInput, for an object of another database, and for the root where a name is required.
   */
  strip(request: Message, database: string): void;
  /** Puts the name of the database before all names in an answer. */
  restore(answer: Message, database: string): void;
  /**
   * Puts the name of a database before all names in a request; those of other objects than the call's stay without it where the
   * request leaves them out.
   *
   * @param id names of the object of the call, with the database.
   */
  enter(request: Message, database: string, id: Identifier): void;
  /** Removes the name of the database from all names in an answer. */
  leave(answer: Message, database: string): void;
}

type Edit = (names: readonly string[], field: string, holder: Fields) => string[];
/** Replaces lists of names in a message, wherever they are. */
export type Walk = (message: Message, edit: Edit) => void;
/** A message with its fields by their names in the program. */
export type Fields = Message & Record<string, unknown>;

/** Fields of requests that lead to an object from the root. */
const IN_REQUESTS: ReadonlySet<string> = new Set([
  "id",
  "new_namespace_id",
  "default_namespace",
  "namespace_path",
]);
/** Fields of answers that lead to an object from the root. */
const IN_ANSWERS: ReadonlySet<string> = new Set([
  "id",
  "namespace",
  "source_namespace",
  "default_namespace",
  "namespace_path",
]);

/** Finds the fields with names in the messages of a method. */
export function createScope({ input, output }: DescMethod): Scope {
  const [inRequest, inAnswer] = [compileWalk(input, IN_REQUESTS), compileWalk(output, IN_ANSWERS)];
  return {
    find(request) {
      let first: string | undefined;
      inRequest?.(request, (names, field, holder) => {
        if (field === "id") first ??= settled(names, holder, request)[0];
        return [...names];
      });
      return first;
    },

    strip(request, database) {
      inRequest?.(request, (names, field, holder) => {
        if (field !== "id") return stripped(names, field, database);
        const rest = stripped(settled(names, holder, request), field, database);
        // From here on, only the list carries the identifier.
        if ("identifier" in holder) holder["identifier"] = "";
        return rest;
      });
    },

    restore(answer, database) {
      inAnswer?.(answer, (names, field, holder) =>
        isSaid(names, field, holder) ? [database, ...names] : [],
      );
    },

    enter(request, database, id) {
      inRequest?.(request, (names, field, holder) => {
        if (field === "id" && holder === request) {
          holder["identifier"] = "";
          return [...id];
        }
        const own = field === "id" ? settled(names, holder, request) : names;
        if ("identifier" in holder) holder["identifier"] = "";
        return own.length === 0 ? [] : [database, ...own];
      });
    },

    leave(answer, database) {
      inAnswer?.(answer, (names) => (names[0] === database ? names.slice(1) : [...names]));
    },
  };
}

/** Returns the scopes of methods, each created once. */
export function createScopes(): (method: DescMethod) => Scope {
  const scopes = new Map<DescMethod, Scope>();
  return (method) => {
    const scope = scopes.get(method) ?? createScope(method);
    scopes.set(method, scope);
    return scope;
  };
}

/** Returns the names of an object, which may also be given as a single string, as in a commit's operations. */
function settled(names: readonly string[], holder: Fields, request: Message): readonly string[] {
  const { identifier, delimiter } = holder as { identifier?: string; delimiter?: string };
  return agreedIdentifier(names, identifier, delimiter ?? ((request as Fields)["delimiter"] as string));
}

function stripped(names: readonly string[], field: string, database: string): string[] {
  const [first, ...rest] = names;
  if (first === undefined) return [];
  if (first !== database) {
    throw new LanceError("InvalidInput", "a call cannot address objects in several databases");
  }
  // An empty list would mean the current namespace.
  if (field !== "id" && rest.length === 0) {
    throw new LanceError("InvalidInput", `${field} must name a namespace in the database`);
  }
  return rest;
}

/** Whether a list is present: an empty list is the root if the field names the object. */
function isSaid(names: readonly string[], field: string, holder: Fields): boolean {
  return (
    names.length > 0 ||
    (field === "namespace" && holder["table"] !== undefined) ||
    field === "source_namespace" ||
    field === "default_namespace"
  );
}

/** Compiles the walk over the lists of names in fields with the given names; undefined if a type has none. */
export function compileWalk(type: DescMessage, names: ReadonlySet<string>): Walk | undefined {
  if (!reaches(type, names, new Set())) return undefined;
  const steps = type.fields.flatMap((field) => stepOf(field, names) ?? []);
  return (message, edit) => {
    for (const step of steps) step(message as Fields, edit);
  };
}

/** Whether a message of a type can hold one of the fields, directly or nested. */
function reaches(type: DescMessage, names: ReadonlySet<string>, seen: Set<DescMessage>): boolean {
  if (seen.has(type)) return false;
  seen.add(type);
  return type.fields.some(
    (field) =>
      isNames(field, names) || (messageOf(field) && reaches(messageOf(field) as DescMessage, names, seen)),
  );
}

function stepOf(
  field: DescField,
  names: ReadonlySet<string>,
): ((message: Fields, edit: Edit) => void) | undefined {
  const { localName } = field;
  if (isNames(field, names)) {
    return (message, edit) => {
      message[localName] = edit(message[localName] as string[], field.name, message);
    };
  }
  const type = messageOf(field);
  const walk = type && compileWalk(type, names);
  if (walk === undefined) return undefined;
  return (message, edit) => {
    for (const each of messagesIn(field, message)) walk(each, edit);
  };
}

function messagesIn(field: DescField, message: Fields): readonly Message[] {
  if (field.oneof !== undefined) {
    const chosen = message[field.oneof.localName] as { case?: string; value?: Message };
    return chosen.case === field.localName ? [chosen.value as Message] : [];
  }
  const value = message[field.localName];
  return value === undefined ? [] : ([value].flat() as Message[]);
}

function isNames(field: DescField, names: ReadonlySet<string>): boolean {
  return field.fieldKind === "list" && field.listKind === "scalar" && names.has(field.name);
}

/** Returns the type of a field's messages; maps have none with names in them. */
function messageOf(field: DescField): DescMessage | undefined {
  return field.fieldKind === "message" || field.fieldKind === "list" ? field.message : undefined;
}
