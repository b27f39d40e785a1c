import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";

/** Fields that identify the caller and carry further context. */
export interface Contextual extends Message {
  identity?: unknown;
  context?: Record<string, string>;
}

type Visit = (message: Contextual) => void;
type Walk = (message: Message, visit: Visit) => void;

const walks = new WeakMap<DescMessage, Walk | null>();

/**
 * Visits the nested messages of a message that have an identity or a context of their own, such as those of a batch.
 */
export function eachNested(type: DescMessage, message: Message, visit: Visit): void {
  walkOf(type)?.(message, visit);
}

/** Whether messages of a type can have nested messages with an identity or a context of their own. */
export function hasNested(type: DescMessage): boolean {
  return walkOf(type) !== null;
}

function walkOf(type: DescMessage): Walk | null {
  let walk = walks.get(type);
  if (walk === undefined) {
    walk = compile(type, new Set()) ?? null;
    walks.set(type, walk);
  }
  return walk;
}

function compile(type: DescMessage, above: ReadonlySet<DescMessage>): Walk | undefined {
  if (above.has(type)) return undefined;
  const inside = new Set([...above, type]);
  const steps = type.fields.flatMap((field) => {
    const nested = field.fieldKind === "message" || field.fieldKind === "list" ? field.message : undefined;
    if (nested === undefined) return [];
    const isContextual = nested.fields.some(({ name }) => name === "identity" || name === "context");
    const below = compile(nested, inside);
    if (!isContextual && below === undefined) return [];
    return (message: Message, visit: Visit) => {
      for (const each of messagesIn(field, message)) {
        if (isContextual) visit(each);
        below?.(each, visit);
      }
    };
  });
  if (steps.length === 0) return undefined;
  return (message, visit) => {
    for (const step of steps) step(message, visit);
  };
}

function messagesIn({ oneof, localName }: DescField, message: Message): readonly Message[] {
  const fields = message as Message & Record<string, unknown>;
  if (oneof !== undefined) {
    const chosen = fields[oneof.localName] as { case?: string; value?: Message };
    return chosen.case === localName ? [chosen.value as Message] : [];
  }
  const value = fields[localName];
  return value === undefined ? [] : ([value].flat() as Message[]);
}
