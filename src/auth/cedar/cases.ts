import type { Access, Properties } from "../../namespace/authorizer.ts";
import { type Principal, type Proof, ROLE_NAMES, type Role } from "../../namespace/call/principal.ts";
import { checkIdentifier, parseIdentifier } from "../../namespace/identifier.ts";
import type { ObjectKind } from "../../namespace/operations/touch.ts";
import { isJsonObject } from "../../runtime/text.ts";
import { BY_NAME } from "./schema.ts";

/** A question to policies, as people write it. */
export interface Question {
  /** Proof and name of the caller, such as `api-key:etl`. */
  readonly principal: string;
  /** Default: `none`. */
  readonly role?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** Operation of the contract, such as `QueryTable`. */
  readonly action: string;
  /** Names of the object, joined by `$`. Default: the database. */
  readonly object?: string | undefined;
  /** Name of the database, if the gateway has several. */
  readonly database?: string | undefined;
  /** Properties of the object. Default: none. */
  readonly properties?: Properties | undefined;
}

/** A question with its expected answer. */
export interface Case {
  readonly name: string;
  readonly question: Question;
  readonly expect: "allow" | "deny";
}

const PROOFS: readonly string[] = ["api-key", "oidc", "kubernetes", "mtls"] satisfies readonly Proof[];

/**
 * Returns the caller and the access of a question.
 *
 * @throws Error with a single line for a question that no call can ask.
 */
export function accessOf(question: Question): { readonly principal: Principal; readonly access: Access } {
  const { action: operation, object = "", database, role = "none", groups = [], claims = {} } = question;
  const [, by, name] = /^([^:]+):(.+)$/s.exec(question.principal) ?? [];
  if (by === undefined || name === undefined || !PROOFS.includes(by)) {
    throw new Error(`principal must be one of ${PROOFS.join(", ")}, a colon and a name`);
  }
  if (!(ROLE_NAMES as readonly string[]).includes(role)) {
    throw new Error(`role must be one of ${ROLE_NAMES.join(", ")}`);
  }
  const facts = BY_NAME.get(operation);
  if (facts === undefined) throw new Error(`action must be an operation of the contract, not ${operation}`);
  const id = parseIdentifier(object);
  checkIdentifier(id);
  const own: ObjectKind = id.length === 0 ? "Database" : facts.kind;
  return {
    principal: { by: by as Proof, name, credentialId: "", role: role as Role, groups, claims },
    access: {
      operation,
      action: facts.action,
      object: { kind: own, database, id },
    },
  };
}

const TEXTS = ["name", "principal", "role", "action", "object", "database", "expect"] as const;
const KEYS: ReadonlySet<string> = new Set([...TEXTS, "groups", "claims", "properties"]);

/**
 * Reads the cases of a file, `{"cases": [...]}`.
 *
 * @param at name of the file, for errors.
 * @throws Error with a single line that names the file and the case.
 */
export function readCases(content: unknown, at: string): readonly Case[] {
  if (!isJsonObject(content) || !Array.isArray(content["cases"])) {
    throw new Error(`${at} must have a list of cases`);
  }
  return content["cases"].map((value: unknown, i) => caseOf(value, `${at}: cases[${i}]`));
}

function caseOf(value: unknown, at: string): Case {
  if (!isJsonObject(value)) throw new Error(`${at} must be a map`);
  const unknown = Object.keys(value).find((key) => !KEYS.has(key));
  if (unknown !== undefined) throw new Error(`${at}.${unknown} is not known`);
  for (const key of TEXTS) {
    if (value[key] !== undefined && typeof value[key] !== "string")
      throw new Error(`${at}.${key} must be a text`);
  }
  const { groups = [], claims = {}, properties = {}, expect } = value;
  if (!Array.isArray(groups) || groups.some((group) => typeof group !== "string")) {
    throw new Error(`${at}.groups must be a list of texts`);
  }
  if (!isJsonObject(claims)) throw new Error(`${at}.claims must be a map`);
  if (!isJsonObject(properties) || Object.values(properties).some((text) => typeof text !== "string")) {
    throw new Error(`${at}.properties must be a map of texts`);
  }
  if (value["principal"] === undefined || value["action"] === undefined) {
    throw new Error(`${at} must have a principal and an action`);
  }
  if (expect !== "allow" && expect !== "deny") throw new Error(`${at}.expect must be allow or deny`);
  const question = { ...value, groups, claims, properties } as unknown as Question;
  try {
    accessOf(question);
  } catch (error) {
    throw new Error(`${at}: ${(error as Error).message}`, { cause: error });
  }
  return { name: String(value["name"] ?? `${question.action} by ${question.principal}`), question, expect };
}
