/** Exports of the client on every platform. */

export type { Call } from "../namespace/call/call.ts";
export { ERROR_TABLE, type ErrorEntry, type ErrorName, LanceError } from "../namespace/errors.ts";
export { type Identifier, joinIdentifier, parseIdentifier } from "../namespace/identifier.ts";
export type { Backend, LanceNamespace, Operation } from "../namespace/lance-namespace.ts";
export type { ConnectProperties } from "./connections/connect.ts";
export type {
  LanceDbAccess,
  NamespaceFactory,
  NamespaceImplementation,
  Properties,
} from "./connections/properties.ts";
export type { RestProperties } from "./connections/rest.ts";
export * from "./errors.ts";
export type { Listing } from "./listing.ts";
export * from "./messages.ts";
export type { Namespace } from "./namespace.ts";
export type { ArrowBytes, ArrowData } from "./rows/arrow-input.ts";
export type { QueryResult } from "./rows/query-result.ts";
export { type Row, rowsToTable } from "./rows/rows.ts";
export type { NewTableOptions, OpenOptions, RenameOptions, TableMethods, TablePlace } from "./tables.ts";
export type { CallOptions, Entry, FieldInput, Fields, Input, Operations } from "./types.ts";
