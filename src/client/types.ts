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
import type { ArrowData } from "./arrow-input.ts";
import type { Listing } from "./listing.ts";
import type { FloatVector, FullTextQuery, QueryColumns, QueryVector } from "./messages.ts";
import type { QueryResult } from "./query-result.ts";

/** What goes with one call. */
export interface CallOptions {
  /** Ends the call; it fails with `Cancelled`, or with `DeadlineExceeded` when the reason is a timeout. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take, in milliseconds; a server is told. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Headers of this call, beside those of the connection and before them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The id that logs and errors have the call under. Default: a random UUID. */
  readonly requestId?: string | undefined;
}

type Numbers = readonly number[] | Float32Array | Float64Array;

/** What stands for a message beside an object of its fields. */
type ShortForm<M> = M extends QueryVector
  ? Numbers | readonly Numbers[]
  : M extends FloatVector
    ? Numbers
    : M extends QueryColumns
      ? readonly string[]
      : M extends FullTextQuery
        ? string
        : never;

/** The fields of a message as a caller writes them; all may be left out. */
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
            : V extends Readonly<Record<string, infer I>>
              ? Readonly<Record<string, FieldInput<I>>>
              : V;

/** The request of a method as a caller writes it. */
export type Input<M extends Message> = Fields<Omit<M, "data">>;

type Methods = typeof LanceNamespaceService.method;

/** The operations that answer page by page, and the field of the answer that holds the page. */
export const LISTINGS = {
  listNamespaces: "namespaces",
  listTables: "tables",
  listAllTables: "tables",
  listTableVersions: "versions",
  listTableIndices: "indexes",
  listTableTags: "tags",
  listTableBranches: "branches",
} as const satisfies Partial<Record<keyof Methods, string>>;

/** One entry of a listing: an item of a list, or the name and the content of an entry of a map. */
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
 * An operation takes its request as an object and answers with a promise; failures are rejections with a
 * LanceError. Listings are also iterables of all entries, uploads take their rows as the second argument, and a
 * query gives a {@link QueryResult}.
 */
export type Operations = { readonly [K in keyof Methods]: ClientMethod<K, Methods[K]> };
