import type {
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  JsonObject,
  JsonValue,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import type { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Listing } from "./listing.ts";
import type { FloatVector, FullTextQuery, QueryColumns, QueryVector } from "./messages.ts";
import type { ArrowData } from "./rows/arrow-input.ts";
import type { QueryResult } from "./rows/query-result.ts";

/** Options of a call. */
export interface CallOptions {
  /** Ends the call, which fails with `Cancelled`, or with `DeadlineExceeded` if the reason is a timeout. */
  readonly signal?: AbortSignal | undefined;
  /** Longest duration of the call, in milliseconds; the client passes it to a server. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Headers of this call, in addition to those of the connection, which they override. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Id of the call in logs and errors. Default: a random UUID. */
  readonly requestId?: string | undefined;
}

type Numbers = readonly number[] | Float32Array | Float64Array;

/** Short form that replaces a message, as an alternative to an object of its fields. */
type ShortForm<M> = M extends QueryVector
  ? Numbers | readonly Numbers[]
  : M extends FloatVector
    ? Numbers
    : M extends QueryColumns
      ? readonly string[]
      : M extends FullTextQuery
        ? string
        : never;

/** Fields of a message as a caller writes them; all are optional. */
export type Fields<M> = {
  readonly [K in keyof M as K extends "$typeName" | "$unknown" ? never : K]?: FieldInput<M[K]>;
};

/** A field as a caller writes it: 64-bit integers also as numbers, enums also by name, in any case. */
export type FieldInput<V> = V extends bigint
  ? bigint | number
  : V extends number
    ? number extends V
      ? number
      : V | string
    : V extends string | boolean | undefined | Uint8Array | JsonObject
      ? V
      : V extends Value
        ? JsonValue
        : V extends Message
          ? Fields<V> | ShortForm<V>
          : V extends readonly (infer I)[]
            ? readonly FieldInput<I>[]
            : V extends { readonly case: infer C extends string; readonly value: infer W }
              ? { readonly case: C; readonly value: FieldInput<W> }
              : V extends Readonly<Record<string, infer I>>
                ? Readonly<Record<string, FieldInput<I>>>
                : V;

/** Request of a method as a caller writes it. */
export type Input<M extends Message> = Fields<Omit<M, "data">>;

type Methods = typeof LanceNamespaceService.method;

/** Operations that answer page by page, and the field of the answer that holds the page. */
export const LISTINGS = {
  listNamespaces: "namespaces",
  listTables: "tables",
  listAllTables: "tables",
  listTableVersions: "versions",
  listTableIndices: "indexes",
  listTableTags: "tags",
  listTableBranches: "branches",
} as const satisfies Partial<Record<keyof Methods, string>>;

/** Entry of a listing: an item of a list, or the name and the content of an entry of a map. */
export type Entry<L> = L extends readonly (infer I)[]
  ? I
  : L extends Readonly<Record<string, infer I>>
    ? readonly [name: string, content: I]
    : never;

type Answer<K, O> = K extends keyof typeof LISTINGS
  ? (typeof LISTINGS)[K] extends keyof O
    ? Listing<O, Entry<O[(typeof LISTINGS)[K]]>>
    : never
  : Promise<O>;

type ClientMethod<K, M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request?: Input<MessageShape<I>>, options?: CallOptions) => Answer<K, MessageShape<O>>
    : M extends DescMethodClientStreaming<infer I, infer O>
      ? (request: Input<MessageShape<I>>, data: ArrowData, options?: CallOptions) => Promise<MessageShape<O>>
      : M extends DescMethodServerStreaming<infer I, infer _O>
        ? (request?: Input<MessageShape<I>>, options?: CallOptions) => QueryResult
        : never;

/**
 * Every operation of the Lance Namespace API.
 *
 * An operation takes its request as an object and returns a promise; failures are rejections with a LanceError.
 * Listings are also iterables of all entries, uploads take their rows as the second argument, and a query returns a
 * {@link QueryResult}.
 */
export type Operations = { readonly [K in keyof Methods]: ClientMethod<K, Methods[K]> };
