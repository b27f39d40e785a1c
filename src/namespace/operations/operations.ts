import type { DescMethod } from "@bufbuild/protobuf";
import { AccessService } from "../../gen/lance/gateway/v1/access_pb.ts";
import { DriverService } from "../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import {
  Action as ActionOption,
  ObjectKind as ObjectOption,
  operation as operationOption,
  type Reach,
} from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Action, isReadAction } from "../call/principal.ts";
import { CHANGE_TYPES, type ChangeType } from "../change-event.ts";
import { optionOf } from "../option.ts";
import { actionOf } from "./method-facts.ts";
import type { AnyOperation, Methods, ObjectKind } from "./touch.ts";

/** Facts about an operation, as the option `operation` beside its rpc states them. */
export interface OperationFacts extends ObjectFacts {
  readonly method: DescMethod;
  /** Right that it requires. */
  readonly action: Action;
  /** Other objects that its requests name or lead to. */
  readonly reach: Reach;
  /** Change that it makes to its object. Default: others see no change. */
  readonly event: ChangeType | undefined;
  /** Whether it keeps other changes of its table away itself. */
  readonly keepsApart: boolean;
  /** Whether an upstream's answer may be kept. */
  readonly cacheable: boolean;
  /** Whether it reads an Arrow body that earlier calls have sent. */
  readonly readsParts: boolean;
  /** Whether it checks a key of its own in place of the caller's credentials. */
  readonly checksKey: boolean;
}

interface ObjectFacts {
  /** Kind of the object of a call; without a name, it is the database. */
  readonly kind: ObjectKind;
  /** Whether it reaches only objects that its request names by identifiers, and what is below them. */
  readonly isConfined: boolean;
  /** Transaction or job whose table is the object. Default: the identifier of the call names the object. */
  readonly by?: "transaction" | "job";
}

const OBJECTS: Readonly<Record<Exclude<ObjectOption, 0>, ObjectFacts | undefined>> = {
  [ObjectOption.DATABASE]: { kind: "Database", isConfined: false },
  [ObjectOption.NAMESPACE]: { kind: "Namespace", isConfined: true },
  [ObjectOption.NAMESPACE_AND_OTHERS]: { kind: "Namespace", isConfined: false },
  [ObjectOption.TABLE]: { kind: "Table", isConfined: true },
  [ObjectOption.TABLE_AND_OTHERS]: { kind: "Table", isConfined: false },
  [ObjectOption.TRANSACTION]: { kind: "Table", isConfined: false, by: "transaction" },
  [ObjectOption.JOB]: { kind: "Table", isConfined: false, by: "job" },
};

/** The methods of the contract, of LanceDB's own routes of the drivers of jobs and of the gateway itself, by operation. */
export const METHODS: Methods = {
  ...LanceNamespaceService.method,
  ...LanceDbService.method,
  ...ViewService.method,
  ...DriverService.method,
  ...AccessService.method,
};

/** Names of the operations. */
export const OPERATION_NAMES = Object.keys(METHODS) as readonly AnyOperation[];

/** The facts about every operation. */
export const OPERATIONS = eachOperation((name) => readFacts(METHODS[name]));

/** Returns the facts about an operation; undefined for a name that no operation has. */
export function factsOf(operation: string): OperationFacts | undefined {
  return Object.hasOwn(OPERATIONS, operation) ? OPERATIONS[operation as AnyOperation] : undefined;
}

/** Whether an operation changes nothing. A name that no operation has counts as a write. */
export function isReadOperation(operation: string): boolean {
  const facts = factsOf(operation);
  return facts !== undefined && isReadAction(facts.action);
}

/** Returns a table with a value for every operation. */
export function eachOperation<T>(create: (name: AnyOperation) => T): { readonly [K in AnyOperation]: T } {
  return Object.fromEntries(OPERATION_NAMES.map((name) => [name, create(name)])) as Record<AnyOperation, T>;
}

/**
 * Reads the facts about an operation from the option of its method.
 *
 * @throws Error for a method without them
 */
export function readFacts(method: DescMethod): OperationFacts {
  const { action, object, reach, event, keepsApart, cacheable, readsParts, checksKey } = optionOf(
    method,
    operationOption,
  );
  const objectFacts = OBJECTS[object as Exclude<ObjectOption, 0>];
  const type = CHANGE_TYPES.find((each) => each === event);
  if (action === ActionOption.UNSPECIFIED || objectFacts === undefined || type !== (event || undefined))
    throw new Error(`${method} needs the option "operation" with an action, an object and a known event`);
  return {
    method,
    action: actionOf(method),
    ...objectFacts,
    reach,
    event: type,
    keepsApart,
    cacheable,
    readsParts,
    checksKey,
  };
}
