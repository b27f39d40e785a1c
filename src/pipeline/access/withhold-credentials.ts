import type { DescMessage, Message } from "@bufbuild/protobuf";
import {
  DeclareTableRequestSchema,
  DescribeTableRequestSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { StorageAccess } from "../../namespace/lance-namespace.ts";
import type { Databases } from "../call/databases.ts";
import { type Interceptor, onlyFor } from "../call/interceptor.ts";

/** Types of requests that say whether they want credentials. */
const ASKING: ReadonlySet<string> = new Set([
  DescribeTableRequestSchema.typeName,
  DeclareTableRequestSchema.typeName,
]);

/** Kinds of access, each with those that it includes. */
const INCLUDED: Readonly<Record<StorageAccess, readonly StorageAccess[]>> = {
  read: ["read"],
  write: ["read", "write"],
  manage: ["read", "write", "manage"],
};

/**
 * Keeps the storage options that an upstream hands out from callers who may do less to the table than the credentials in them. The
 * upstream sees the gateway, and not what a caller may do.
 */
export function withholdCredentials(databases: Databases): Interceptor {
  const withholdFrom: Interceptor = (call, request, next) => {
    const access = databases.get(call.database)?.backend.handsOut;
    return access === undefined ? next(call, request) : withhold(access, call, request, next);
  };
  return onlyFor(({ method }) => hasStorageOptions(method.output), withholdFrom);
}

/** Whether messages of a type, or those in it, may have storage options with credentials. */
function hasStorageOptions(type: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(type)) return false;
  seen.add(type);
  return type.fields.some(
    ({ name, message }) => name === "storage_options" || (message && hasStorageOptions(message, seen)),
  );
}

async function withhold(access: StorageAccess, ...[call, request, next]: Parameters<Interceptor>) {
  if (await mayHave(call, access)) return next(call, request);
  call.takes = undefined;
  for (const part of partsOf(request.message)) if (ASKING.has(part.$typeName)) part.vendCredentials = false;
  const answer = await next(call, request);
  for (const part of partsOf(answer as Message)) if ("storageOptions" in part) part.storageOptions = {};
  return answer;
}

async function mayHave({ may }: Call, access: StorageAccess): Promise<boolean> {
  // Nothing decides about callers, so that everyone may do everything.
  if (may === undefined) return true;
  for (const kind of INCLUDED[access]) if (!(await may(kind))) return false;
  return true;
}

interface Part {
  readonly $typeName: string;
  vendCredentials?: boolean;
  storageOptions?: Record<string, string>;
}

/** A commit and its answer, whose entries are requests and answers of single tables. */
interface Commit {
  readonly operations?: readonly { readonly operation: { readonly value?: Part } }[];
  readonly results?: readonly { readonly result: { readonly value?: Part } }[];
}

/** Returns a message and the messages of its entries. */
function partsOf(message: Message): Part[] {
  const { operations = [], results = [] } = message as Message & Commit;
  const entries = [...operations.map(({ operation }) => operation), ...results.map(({ result }) => result)];
  return [message as Part, ...entries.flatMap(({ value }) => value ?? [])];
}
