import { create } from "@bufbuild/protobuf";
import {
  type FlightDescriptor,
  FlightDescriptor_DescriptorType as Type,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { type QueryTableRequest, QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { parseFlightJson, placeBelow, requestFromJson } from "./json-request.ts";

/** Rows that a descriptor means. */
export interface Target {
  readonly query: QueryTableRequest;
  /** Whether it is a whole table. */
  readonly isTable: boolean;
}

/**
 * Returns the rows that a descriptor means: those of a table for a path, those of a query for a command, which is the JSON of QueryTable.
 *
 * @throws LanceError InvalidInput
 */
export function targetOf(descriptor: FlightDescriptor, namespacePath: Identifier): Target {
  const isTable = descriptor.type === Type.PATH;
  const query = isTable ? create(QueryTableRequestSchema, { id: descriptor.path }) : queryOf(descriptor);
  placeBelow(namespacePath, query);
  return { query, isTable };
}

function queryOf({ type, cmd }: FlightDescriptor): QueryTableRequest {
  if (type !== Type.CMD) throw new LanceError("InvalidInput", "the descriptor must be a path or a command");
  return requestFromJson(QueryTableRequestSchema, parseFlightJson(cmd, "the command"));
}
