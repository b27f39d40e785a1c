import type { Message } from "@bufbuild/protobuf";
import { agreedIdentifier } from "../../namespace/identifier.ts";
import type { OperationRequest } from "./interceptor.ts";

/** Makes the lists of a commit's entries name their tables, so that nothing has to parse a text later. */
export function nameEntries({ message, operation }: OperationRequest): void {
  if (operation !== "batchCommitTables") return;
  const { operations, delimiter: common } = message as Message & Commit;
  for (const { operation: entry } of operations) {
    if (entry.value === undefined) continue;
    const { id, identifier, delimiter = common } = entry.value;
    entry.value.id = [...agreedIdentifier(id, identifier, delimiter)];
    entry.value.identifier = "";
  }
}

interface Commit {
  readonly delimiter?: string;
  readonly operations: readonly { readonly operation: { readonly value?: Entry } }[];
}

interface Entry {
  id: string[];
  identifier: string;
  readonly delimiter?: string;
}
