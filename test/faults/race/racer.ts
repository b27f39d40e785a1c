import { basename } from "node:path";
import { errorEntry } from "../../../src/namespace/errors.ts";
import { people, personStream } from "../../support/arrow.ts";
import { CallError, type LanceClient } from "../../support/client.ts";

/** A call on a table by its full name. */
export type RaceCall =
  | { readonly kind: "create" | "declare" | "drop" | "exists" | "describe"; readonly id: readonly string[] }
  | { readonly kind: "rename"; readonly id: readonly string[]; readonly to: readonly string[] };

/** The outcome of a call. */
export type RaceResult = (
  | {
      readonly ok: true;
      /** The last part of the table's location, if the answer contains it. */
      readonly location?: string;
    }
  | { readonly ok: false; readonly code: number; readonly text?: string }
) & {
  /** Set when the answer does not say whether this call took effect. */
  readonly unclear?: true;
};

/** A participant in a race: a gateway's client, or another implementation. */
export interface Racer {
  readonly name: string;
  /** Whether it can rename tables. Default: true. */
  readonly renames?: boolean;
  call(call: RaceCall): Promise<RaceResult>;
  /** Returns all tables of a namespace, in order. */
  tables(namespace: readonly string[]): Promise<string[]>;
}

/** Codes of errors that calls of a race may get. */
export const REFUSALS = {
  notFound: errorEntry("TableNotFound").code,
  alreadyExists: errorEntry("TableAlreadyExists").code,
  concurrent: errorEntry("ConcurrentModification").code,
} as const;

/** Creates a racer that calls a gateway. */
export function createGatewayRacer(name: string, client: LanceClient): Racer {
  async function answer(call: RaceCall): Promise<string | undefined> {
    const id = [...call.id];
    switch (call.kind) {
      case "create":
        return (await client.createTable({ id }, personStream(people(2)))).location;
      case "declare":
        return (await client.declareTable({ id })).location;
      case "drop":
        return (await client.dropTable({ id })).location;
      case "describe":
        return (await client.describeTable({ id })).location;
      case "exists":
        await client.tableExists({ id });
        return undefined;
      case "rename":
        await client.renameTable({
          id,
          newNamespaceId: call.to.slice(0, -1),
          newTableName: call.to.at(-1) as string,
        });
        return undefined;
    }
  }
  return {
    name,
    async call(call) {
      try {
        const location = await answer(call);
        return { ok: true, ...(location !== undefined && { location: basename(location) }) };
      } catch (error) {
        if (!(error instanceof CallError) || error.failure.code === undefined) throw error;
        return { ok: false, code: error.failure.code, text: error.message };
      }
    },
    async tables(namespace) {
      return (await client.listTables({ id: [...namespace] })).tables.toSorted();
    },
  };
}
