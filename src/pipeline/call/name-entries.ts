import { isMessage } from "@bufbuild/protobuf";
import { BatchCommitTablesRequestSchema } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import { agreedIdentifier } from "../../namespace/identifier.ts";
import type { OperationRequest } from "./interceptor.ts";

/** Makes the lists of a commit's entries name their tables, so that nothing has to parse a text later. */
export function nameEntries({ message }: OperationRequest): void {
  if (!isMessage(message, BatchCommitTablesRequestSchema)) return;
  const { operations, delimiter: common } = message;
  for (const { operation: entry } of operations) {
    if (entry.value === undefined) continue;
    const { id, identifier, delimiter = common } = entry.value;
    entry.value.id = [...agreedIdentifier(id, identifier, delimiter)];
    entry.value.identifier = "";
  }
}
