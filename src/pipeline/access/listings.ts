import type { Message } from "@bufbuild/protobuf";
import type { JobSummary } from "../../gen/lance/gateway/v1/job_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier, parseIdentifier } from "../../namespace/identifier.ts";
import type { Touch } from "../../namespace/operations/touch.ts";
import type { OperationName } from "../call/interceptor.ts";

/** Request of a listing. */
export type ListRequest = Message & { limit?: number; pageToken?: string; delimiter?: string };

/** Answer of a listing; the entries are in the field of the listing. */
export type ListAnswer = Message & { readonly [field: string]: unknown; readonly pageToken?: string };

/** A listing of objects. */
export interface Listing {
  /** Field of the answer with the entries. */
  readonly field: string;
  /** Right that shows the entries, if these are the names of objects in the object of the call. Default: they are not. */
  readonly children?: Pick<Touch, "operation" | "kind">;
  /**
   * Spells an entry, which the backend has spelled with `$`, as the request wants it. With a delimiter of the caller's choice, a hidden
   * object could read like one that the caller may see. Default: no request decides how entries are spelled.
   */
  readonly spell?: (entry: never, request: ListRequest) => unknown;
  /**
   * Returns what the caller needs to see an entry; undefined hides the entry.
   *
   * @param isRoot whether the call lists the databases.
   */
  needs(entry: never, call: Call, isRoot: boolean): Touch | undefined;
}

const TABLES = {
  children: { operation: "describeTable", kind: "Table" },
  needs: (name: string, { id }: Call) => seeTable([...id, name]),
} as const;

/** The operations that list objects of the catalog. Lists of what belongs to a single table need a right to the table. */
const LISTINGS: { readonly [K in OperationName]?: Listing } = {
  listNamespaces: {
    field: "namespaces",
    children: { operation: "describeNamespace", kind: "Namespace" },
    needs: (name: string, { id }, isRoot) =>
      isRoot
        ? { operation: "describeNamespace", kind: "Database", id: [], database: name }
        : { operation: "describeNamespace", kind: "Namespace", id: [...id, name] },
  },
  listTables: { field: "tables", ...TABLES },
  listMaterializedViews: { field: "views", ...TABLES },
  listViews: { field: "views", ...TABLES },
  listAllTables: {
    field: "tables",
    needs: (text: string) => seeNamed(text),
    spell: (text: string, { delimiter }) =>
      delimiter === undefined ? text : joinIdentifier(parseIdentifier(text), delimiter),
  },
  listJobs: { field: "jobs", needs: ({ table }: JobSummary) => seeNamed(table) },
};

/**
 * Returns the listing of an operation.
 *
 * @throws Error for an operation that lists objects in a way that is not known
 */
export function listingOf(operation: OperationName): Listing {
  const listing = LISTINGS[operation];
  if (listing === undefined) throw new Error(`${operation} lists what nothing filters`);
  return listing;
}

function seeTable(id: Identifier): Touch {
  return { operation: "describeTable", kind: "Table", id };
}

function seeNamed(text: string): Touch | undefined {
  try {
    return seeTable(parseIdentifier(text));
  } catch (thrown) {
    // Nobody could name the object.
    if (isLanceError(thrown, "InvalidInput")) return undefined;
    throw thrown;
  }
}
