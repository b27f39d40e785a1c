import { create, type DescMethod } from "@bufbuild/protobuf";
import type { KeyRecord } from "../../auth/api-keys/key-file.ts";
import { accessOf, type Question } from "../../auth/cedar/cases.ts";
import { reasonOf } from "../../auth/cedar/decide.ts";
import { BY_NAME } from "../../auth/cedar/schema.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import {
  AccessService,
  type TryAccessRequest,
  TryAccessResponseSchema,
} from "../../gen/lance/gateway/v1/access_pb.ts";
import type { Access, AccessAdministration, Authorizer } from "../../namespace/authorizer.ts";
import type { Call } from "../../namespace/call/call.ts";
import { allows, isOwnerOfAll, isReadAction, type Principal, ROLES } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { checkIdentifier, joinIdentifier, parseIdentifier } from "../../namespace/identifier.ts";
import { OPERATION_NAMES, type OperationFacts } from "../../namespace/operations/operations.ts";
import { isInScope, objectsOfOwners } from "../../pipeline/access/keep-to-scope.ts";
import { createPropertyLookup } from "../../pipeline/access/permissions.ts";
import { type Databases, nameOfUnnamed } from "../../pipeline/call/databases.ts";

/** Options about access that hold now. */
export type AccessOptions = Partial<Pick<ServeOptions, "auth" | "apiKeysFile" | "opaUrl" | "readOnly">>;

/** Parts of {@link createTryAccess}. */
export interface TryAccessOptions {
  readonly options: AccessOptions;
  /** Default: roles decide. */
  readonly authorizer: Authorizer | undefined;
  readonly databases: Databases;
  keys(): Promise<readonly KeyRecord[]>;
}

/** An answer, with the policies that decided. Default: roles decided. */
interface Answer {
  readonly allowed: boolean;
  readonly reason: string;
  readonly policies?: readonly string[];
}

const YES = (reason: string): Answer => ({ allowed: true, reason });
const NO = (reason: string): Answer => ({ allowed: false, reason });

/** The operations of the gateway itself that change something. */
const CHANGES_OF_KEYS: ReadonlySet<DescMethod> = new Set([
  AccessService.method.createKey,
  AccessService.method.revokeKey,
]);

/** Creates the operation that tells what a caller may do. It asks whatever decides about calls, and runs nothing. */
export function createTryAccess(given: TryAccessOptions): AccessAdministration["tryAccess"] {
  const { options, authorizer, databases, keys } = given;
  const unnamed = nameOfUnnamed(databases);
  const propertiesOf = createPropertyLookup(databases);

  async function questionOf(request: TryAccessRequest) {
    const { key: keyId, principal, role, groups, operation, object, database } = request;
    checkIdentifier(object);
    if (database !== "" && !databases.has(database))
      throw new LanceError("NamespaceNotFound", `there is no database ${JSON.stringify(database)}`);
    const asked = {
      ...{ action: operation, object: joinIdentifier(object) },
      database: database === "" ? unnamed : database,
    };
    if (keyId === "") return { question: { ...asked, principal, role: role || "none", groups } };
    const record = (await keys()).find(({ id }) => id === keyId);
    if (record === undefined)
      throw new LanceError("InvalidInput", `there is no key ${JSON.stringify(keyId)}`);
    const { name, role: own, groups: members = [] } = record;
    return { question: { ...asked, principal: `api-key:${name}`, role: own, groups: members }, record };
  }

  async function decide(principal: Principal, access: Access): Promise<Answer> {
    const { action } = access;
    const { method, checksKey } = BY_NAME.get(access.operation) as OperationFacts;
    const isOfGateway = method.parent === AccessService;
    const writes = isOfGateway ? CHANGES_OF_KEYS.has(method) : !isReadAction(action);
    if (options.readOnly && writes) return NO("the gateway is read-only");
    if (checksKey) return NO("it checks a key of its own, and not who calls");
    if ((options.auth ?? []).length === 0) return YES("the gateway does not ask who calls");
    if (isOfGateway) return decideForOwners(principal, access);
    const beyond = beyondScope(principal, access);
    if (beyond !== undefined) return NO(beyond);
    if (authorizer === undefined) {
      const { role } = principal;
      if (allows({ role }, action)) return YES(`the role ${role} allows ${action}`);
      return NO(`the role ${role} allows ${ROLES[role].join(", ") || "nothing"}, and not ${action}`);
    }
    return ask(authorizer, principal, access);
  }

  /** Decides about an operation of the gateway itself, which is for its owners. */
  async function decideForOwners(principal: Principal, access: Access): Promise<Answer> {
    if (!isOwnerOfAll(principal)) return NO("only callers with the role owner and without a scope may do it");
    if (authorizer === undefined) return YES("the role owner without a scope allows it");
    const answers: Answer[] = [];
    for (const object of objectsOfOwners(databases)) {
      const answer = await ask(authorizer, principal, { ...access, object });
      if (!answer.allowed) return answer;
      answers.push(answer);
    }
    const policies = [...new Set(answers.flatMap((answer) => answer.policies ?? []))];
    return { ...(answers[0] as Answer), policies };
  }

  async function ask(authorizer: Authorizer, principal: Principal, access: Access): Promise<Answer> {
    if (authorizer.explain === undefined)
      return (await authorizer.allows(principal, access))
        ? YES("permitted by the policy server")
        : NO("not permitted by the policy server");
    const decision = await authorizer.explain(principal, access);
    return { allowed: decision.allowed, reason: reasonOf(decision), policies: decision.by };
  }

  return async (request, call) => {
    const { question, record } = await questionOf(request);
    const { principal, access } = readQuestion(question);
    const scope = record?.scope?.map((object) => parseIdentifier(object));
    const caller: Principal = { ...principal, ...(scope && { scope }) };
    const expires = record?.expires;
    const { policies = [], ...answer } =
      expires !== undefined && Date.parse(expires) <= Date.now()
        ? NO(`the key expired at ${expires}`)
        : await decide(caller, { ...access, properties: () => lookUp(call, access) });
    return create(TryAccessResponseSchema, { ...answer, policies: [...policies] });
  };

  function lookUp(call: Call, { object: { kind, id, database } }: Access) {
    const operation = OPERATION_NAMES[0] as (typeof OPERATION_NAMES)[number];
    return propertiesOf(call, { operation, kind, id, ...(database !== undefined && { database }) });
  }
}

/** Returns why an access is out of the scope of a key; undefined if it is not. */
function beyondScope({ scope }: Principal, { operation, object }: Access): string | undefined {
  if (scope === undefined) return undefined;
  const facts = BY_NAME.get(operation);
  const restricted = `the key is restricted to ${scope.map((each) => joinIdentifier(each)).join(", ")}`;
  if (facts?.isConfined !== true) return `${restricted}, and ${operation} may reach other objects`;
  const names = [...(object.database ? [object.database] : []), ...object.id];
  return isInScope(scope, names) ? undefined : `${restricted}, and the object is not in it`;
}

function readQuestion(question: Question) {
  try {
    const found = accessOf(question);
    const isOfGateway = BY_NAME.get(question.action)?.method.parent === AccessService;
    if (isOfGateway && found.access.object.id.length > 0)
      throw new Error(`${question.action} is for the whole gateway, so that it has no object`);
    return found;
  } catch (error) {
    if (error instanceof LanceError) throw error;
    throw new LanceError("InvalidInput", (error as Error).message, { cause: error });
  }
}
