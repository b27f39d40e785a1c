import { type DescField, type DescMessage, type DescMethod, hasOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { AccessService } from "../../gen/lance/gateway/v1/access_pb.ts";
import { DriverService } from "../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import {
  Action as ActionOption,
  ActionSchema,
  ObjectKind as ObjectOption,
  operation,
  operation as operationOption,
  type Reach,
} from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Action, isReadAction } from "../call/principal.ts";
import { CHANGE_TYPES, type ChangeType } from "../change-event.ts";
import { optionOf } from "../option.ts";
import { parseTemplate } from "./template.ts";
import type { AnyOperation, Methods, ObjectKind } from "./touch.ts";

const known = new WeakMap<DescMethod, Action>();

/** Returns the right that an operation requires, as the option of its method says. A method without the option needs the most. */
export function actionOf(method: DescMethod): Action {
  let action = known.get(method);
  if (action === undefined) {
    const { action: number } = optionOf(method, operation);
    action = number === 0 ? "admin" : (ActionSchema.value[number]?.localName.toLowerCase() as Action);
    known.set(method, action);
  }
  return action;
}

/** Whether an operation changes nothing. A method without the option counts as a write. */
export function isRead(method: DescMethod): boolean {
  return isReadAction(actionOf(method));
}

/** Returns the local name of the field that carries a body other than JSON; undefined if a message has none. */
export function bodyFieldOf(message: DescMessage): string | undefined {
  return message.fields.find((field) => field.message?.typeName === HttpBodySchema.typeName)?.localName;
}

const NO_FIELDS: readonly DescField[] = [];
const fieldsOf = new WeakMap<DescMethod, readonly DescField[]>();

/** Returns the text fields of a request that the paths of a method carry, by its HTTP annotation. */
export function pathFieldsOf(method: DescMethod): readonly DescField[] {
  let fields = fieldsOf.get(method);
  if (fields === undefined) {
    fields = findPathFields(method);
    fieldsOf.set(method, fields);
  }
  return fields;
}

function findPathFields(method: DescMethod): readonly DescField[] {
  if (!hasOption(method, http)) return NO_FIELDS;
  const rule = optionOf(method, http);
  const names = new Set<string>();
  for (const { pattern } of [rule, ...rule.additionalBindings]) {
    if (pattern.case === undefined || typeof pattern.value !== "string") continue;
    for (const { field } of parseTemplate(pattern.value).variables) names.add(field);
  }
  return method.input.fields.filter(({ name, fieldKind }) => fieldKind === "scalar" && names.has(name));
}

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
