import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { ErrorName } from "../namespace/errors.ts";

/** What tells who speaks, before anything of a request is read. */
export interface RequestFacts {
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The query string without its question mark. */
  readonly query: string;
}

/** The JSON texts of an answer's fields by their REST names; fields that are left out are missing. */
export type FieldTexts = Readonly<Record<string, string>>;

/** How a family of clients writes one type of message. Each function is left out where nothing differs. */
export interface MessageForm {
  /** Turns what a client sends into the specification's JSON. It must not change its argument. */
  readonly read?: ((json: unknown) => unknown) | undefined;
  /** Fills in what a client leaves unsaid and means, whether the message comes from a body or a query. */
  readonly settle?: ((message: Message) => void) | undefined;
  /** Turns the specification's fields into the client's, or into the text of the whole answer. */
  readonly write?: ((fields: FieldTexts) => FieldTexts | string) | undefined;
}

/** An error that a family of clients looks for under another HTTP status. The code stays. */
export interface ErrorForm {
  readonly error: ErrorName;
  readonly status: number;
  /** The full name of the request's type; without it, all of them. */
  readonly request?: string;
}

/** What a family of clients does in another way than the specification, declared as data. */
export interface Dialect {
  readonly name: string;
  recognises(facts: RequestFacts): boolean;
  /** By the full name of the message's type. */
  readonly forms: ReadonlyMap<string, MessageForm>;
  /** The first row that fits an error counts. */
  readonly errors: readonly ErrorForm[];
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One row of {@link Dialect.forms}, typed by the message that it is about. */
export function form<D extends DescMessage>(
  message: D,
  { read, settle, write }: Omit<MessageForm, "settle"> & { settle?: (message: MessageShape<D>) => void },
): readonly [string, MessageForm] {
  return [message.typeName, { read, settle: settle as MessageForm["settle"], write }];
}

/** The HTTP status of an error in a dialect; undefined where it is the error's own. */
export function errorStatus(dialect: Dialect, error: string, request: string): number | undefined {
  return dialect.errors.find((row) => row.error === error && (row.request ?? request) === request)?.status;
}
