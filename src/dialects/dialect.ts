import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { ErrorName } from "../namespace/errors.ts";

/** The parts of a request that reveal its client, before anything else is read. */
export interface RequestFacts {
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The query string without its question mark. */
  readonly query: string;
}

/** JSON texts of an answer's fields by their REST names; omitted fields are missing. */
export type FieldTexts = Readonly<Record<string, string>>;

/** How a family of clients writes a type of message. A function is absent if nothing differs. */
export interface MessageForm {
  /** Converts the client's JSON to the specification's. It must not change its argument. */
  readonly read?: ((json: unknown) => unknown) | undefined;
  /** Names that the client gives to query parameters, each with the specification's name. Default: none. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Fills in values that a client implies, whether the message comes from a body or a query. */
  readonly settle?: ((message: Message) => void) | undefined;
  /** Converts the specification's fields to the client's, or to the text of the whole answer. */
  readonly write?: ((fields: FieldTexts) => FieldTexts | string) | undefined;
  /** Returns the HTTP status of a success with this answer; undefined if it is the operation's own. */
  readonly status?: ((message: Message) => number | undefined) | undefined;
}

/** An error that a family of clients expects under another HTTP status or with another message. The code stays. */
export interface ErrorForm {
  readonly error: ErrorName;
  readonly status: number;
  /** Full name of the request's type. Default: all types. */
  readonly request?: string;
  /** Message that the clients match. Default: the error's own. */
  readonly text?: string;
}

/** How a family of clients deviates from the specification, declared as data. */
export interface Dialect {
  readonly name: string;
  recognises(facts: RequestFacts): boolean;
  /** By the full name of the message's type. */
  readonly forms: ReadonlyMap<string, MessageForm>;
  /** The first row that matches an error counts. */
  readonly errors: readonly ErrorForm[];
  /** The `prefer` header (RFC 7240) that a request implies unless it has one, by the full name of its type. */
  readonly preferences: ReadonlyMap<string, string>;
  /** Returns entries of the context that a request implies, by its type and what reveals its client. Default: none. */
  contextOf?(
    request: string,
    facts: Pick<RequestFacts, "headers"> & { readonly host: string | undefined },
  ): Readonly<Record<string, string>> | undefined;
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Creates a row of {@link Dialect.forms}, typed by its message. */
export function form<D extends DescMessage>(
  message: D,
  form: Omit<MessageForm, "settle" | "status"> & {
    settle?: (message: MessageShape<D>) => void;
    status?: (message: MessageShape<D>) => number | undefined;
  },
): readonly [string, MessageForm] {
  return [message.typeName, form as MessageForm];
}

/** Returns how a dialect writes an error; undefined if it writes the error as it is. */
export function errorForm(dialect: Dialect, error: string, request: string): ErrorForm | undefined {
  return dialect.errors.find((row) => row.error === error && (row.request ?? request) === request);
}

/** The public specification, word for word: the dialect of every client that no other dialect recognises. */
export const specification: Dialect = {
  name: "specification",
  recognises: () => true,
  forms: new Map(),
  errors: [],
  preferences: new Map(),
  headers: {},
};
