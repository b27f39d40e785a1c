import { create } from "@bufbuild/protobuf";
import {
  type AlterTransactionAction,
  AlterTransactionResponseSchema,
  type AlterTransactionSetProperty,
  type AlterTransactionUnsetProperty,
  DescribeTransactionResponseSchema,
  SetPropertyMode,
  TransactionStatus,
  UnsetPropertyMode,
} from "../../../../gen/lance/namespace/v1/transaction_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import {
  alter,
  effectiveProperties,
  readAlteration,
  type TransactionAlteration,
} from "../../format/versions/transaction-alterations.ts";
import { findTransaction, type TransactionRecord } from "../../format/versions/transaction-records.ts";
import { checkProperties } from "../properties.ts";
import { requireDataset } from "./versions.ts";

/** The operations on transactions: how a version came about, and what clients noted about it later. */
export function createTransactionOperations(
  context: DataContext,
): Pick<LanceNamespace, "describeTransaction" | "alterTransaction"> {
  const locks = context.createLocks("transactions");

  async function find(call: Call) {
    const { id } = call;
    const name = id.at(-1);
    if (name === undefined || id.length < 2) {
      throw new LanceError(
        "InvalidInput",
        "a transaction identifier is the table identifier followed by the transaction id",
      );
    }
    const dataset = await requireDataset(context, call, undefined, id.slice(0, -1));
    return { dataset, transaction: await findTransaction(dataset, name) };
  }

  return {
    async describeTransaction(_request, call) {
      const { dataset, transaction } = await find(call);
      const alteration = await readAlteration(dataset, transaction);
      return create(DescribeTransactionResponseSchema, answer(transaction, alteration));
    },
    async alterTransaction({ actions }, call) {
      const changes = actions.map(toChange);
      if (changes.length === 0) throw new LanceError("InvalidInput", "actions must not be empty");
      const { dataset, transaction } = await find(call);
      return locks.withLocks([`${dataset.root}/${transaction.uuid}`], async () => {
        const after = await alter(dataset, transaction, (before) => {
          const state = copyOf(before);
          for (const change of changes) change(state, transaction);
          if (actions.some(({ action }) => action.case === "setPropertyAction"))
            checkProperties(
              context.tables.properties.maxBytes,
              call.id,
              Object.fromEntries(state.properties),
            );
          return state;
        });
        return create(AlterTransactionResponseSchema, answer(transaction, after));
      });
    },
  };
}

/** Properties that belong to the transaction itself. */
const RESERVED = ["uuid", "version", "read_version", "operation", "tag"];

/** Statuses in the spelling of the API, in which they are also kept. */
const STATUSES: ReadonlyMap<string, TransactionStatus> = new Map([
  ["Queued", TransactionStatus.QUEUED],
  ["Running", TransactionStatus.RUNNING],
  ["Succeeded", TransactionStatus.SUCCEEDED],
  ["Failed", TransactionStatus.FAILED],
  ["Canceled", TransactionStatus.CANCELED],
]);

function answer(transaction: TransactionRecord, alteration: TransactionAlteration) {
  const { uuid, version, readVersion, operation, tag } = transaction;
  const properties = {
    ...Object.fromEntries(effectiveProperties(transaction, alteration)),
    uuid,
    version: String(version),
    read_version: String(readVersion),
    operation,
    ...(tag !== undefined && { tag }),
  };
  // An existing version comes from a transaction that succeeded.
  return { status: parseStatus(alteration.status ?? "Succeeded"), properties };
}

/** Reads a status. Other writers keep it in their client's spelling, in any case and with underscores. */
function parseStatus(text: string): TransactionStatus {
  const plain = (name: string) => name.toLowerCase().replaceAll("_", "");
  const found = [...STATUSES].find(([name]) => plain(name) === plain(text));
  return found?.[1] ?? TransactionStatus.UNSPECIFIED;
}

/** An alteration that the actions of a call change in place: a copy for each of thousands would take seconds. */
interface Draft {
  status: string | undefined;
  readonly properties: Map<string, string>;
  readonly removed: Set<string>;
}

function copyOf({ status, properties, removed }: TransactionAlteration): Draft {
  return { status, properties: new Map(properties), removed: new Set(removed) };
}

function has({ properties, removed }: Draft, transaction: TransactionRecord, key: string): boolean {
  return properties.has(key) || (Object.hasOwn(transaction.properties, key) && !removed.has(key));
}

type Change = (state: Draft, transaction: TransactionRecord) => void;

/** Returns the change that an action makes. @throws LanceError InvalidInput for an incomplete action */
function toChange({ action }: AlterTransactionAction): Change {
  switch (action.case) {
    case "setStatusAction":
      return setStatus(action.value.status);
    case "setPropertyAction":
      return setProperty(action.value);
    case "unsetPropertyAction":
      return unsetProperty(action.value);
    default:
      throw new LanceError("InvalidInput", "an entry of actions must have exactly one action");
  }
}

function setStatus(wanted: TransactionStatus | undefined): Change {
  const status = [...STATUSES].find(([, value]) => value === wanted)?.[0];
  if (status === undefined) throw new LanceError("InvalidInput", "a set_status action requires a status");
  return (state) => {
    state.status = status;
  };
}

function setProperty({ key: name, value, mode }: AlterTransactionSetProperty): Change {
  const key = checkKey(name);
  if (value === undefined) throw new LanceError("InvalidInput", "a set_property action requires a value");
  return (state, transaction) => {
    const exists = has(state, transaction, key);
    if (exists && mode === SetPropertyMode.FAIL) {
      throw new LanceError("ConcurrentModification", `property ${JSON.stringify(key)} is already set`);
    }
    if (exists && mode === SetPropertyMode.SKIP) return;
    state.removed.delete(key);
    state.properties.set(key, value);
  };
}

function unsetProperty({ key: name, mode }: AlterTransactionUnsetProperty): Change {
  const key = checkKey(name);
  return (state, transaction) => {
    if (mode === UnsetPropertyMode.FAIL && !has(state, transaction, key)) {
      throw new LanceError("InvalidInput", `property ${JSON.stringify(key)} is not set`);
    }
    state.properties.delete(key);
    if (Object.hasOwn(transaction.properties, key)) state.removed.add(key);
  };
}

function checkKey(key = ""): string {
  if (key === "") throw new LanceError("InvalidInput", "a property action requires a key");
  if (!RESERVED.includes(key)) return key;
  throw new LanceError("InvalidInput", `property ${JSON.stringify(key)} comes from the transaction itself`);
}
