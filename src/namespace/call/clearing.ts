import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type Identifier, parseIdentifier } from "../identifier.ts";
import type { Call } from "./call.ts";

type Single = (request: Message, ...rest: unknown[]) => Promise<Message>;
type Streaming = (request: Message, call: Call) => AsyncIterable<Message>;

/**
 * Clears what is kept of the objects that handlers of writing calls may touch: before the call, so that no caller gets a value that may change
 * now, and after it, because another caller may have asked meanwhile. A call that failed or was cancelled may have
 * had an effect.
 */
export function createClearing(clear: (id: Identifier) => void) {
  return (method: DescMethod, handler: unknown): unknown => {
    if (method.methodKind === "server_streaming") {
      const stream = handler as Streaming;
      return async function* (request: Message, call: Call) {
        const after = before(request, call);
        try {
          yield* stream(request, call);
        } finally {
          after();
        }
      };
    }
    const single = handler as Single;
    return async (request: Message, ...rest: unknown[]) => {
      const after = before(request, rest.at(-1) as Call);
      try {
        return await single(request, ...rest);
      } finally {
        after();
      }
    };
  };

  function before(request: Message, call: Call): () => void {
    // The handler may change the request.
    const touched = touchedBy(request, call);
    const run = () => {
      for (const id of touched) clear(id);
    };
    run();
    return run;
  }
}

type Fields = Message & Record<string, unknown>;

const EVERYTHING: readonly Identifier[] = [[]];

/**
 * Returns the objects that a writing call may touch: its own, the new name of a renamed table, and those that its
 * operations name. A call that names none, or in an unknown form, may touch everything.
 */
function touchedBy(request: Message, call: Call): readonly Identifier[] {
  const found: Identifier[] = call.id.length > 0 ? [call.id] : [];
  try {
    visit(request as Fields, call, undefined, found);
  } catch {
    // The upstream reports what is wrong with a name.
    return EVERYTHING;
  }
  return found.length === 0 ? EVERYTHING : found;
}

function visit(message: Fields, call: Call, common: string | undefined, found: Identifier[]): void {
  const delimiter = (message["delimiter"] as string | undefined) ?? common;
  const id = namesOf(message, delimiter);
  if (id.length > 0) found.push(id);
  const newName = message["newTableName"];
  if (typeof newName === "string") {
    const table = id.length > 0 ? id : call.id;
    const namespace = (message["newNamespaceId"] as string[] | undefined) ?? [];
    found.push([...(namespace.length > 0 ? namespace : table.slice(0, -1)), newName]);
  }
  for (const value of Object.values(message)) {
    for (const below of messagesIn(value)) visit(below, call, delimiter, found);
  }
}

/** Returns the object that a message names by a list or by a string. */
function namesOf(message: Fields, delimiter?: string): Identifier {
  const { id, identifier } = message as { id?: unknown; identifier?: unknown };
  if (Array.isArray(id) && id.length > 0) return [...id];
  return typeof identifier === "string" && identifier !== "" ? parseIdentifier(identifier, delimiter) : [];
}

/** Returns the messages in the value of a field: its own, those of a list, or the chosen case of a oneof. */
function messagesIn(value: unknown): readonly Fields[] {
  if (Array.isArray(value)) return value.filter(isMessageLike);
  if (isMessageLike(value)) return [value];
  const chosen = (value as { value?: unknown } | null | undefined)?.value;
  return isMessageLike(chosen) ? [chosen] : [];
}

function isMessageLike(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && "$typeName" in value;
}
