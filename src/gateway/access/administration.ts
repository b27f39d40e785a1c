import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  faultOfScope,
  issueKey,
  type KeyFacts,
  type KeyRecord,
  readKeyFile,
  revokeKey,
} from "../../auth/api-keys/key-file.ts";
import { targetOf } from "../../auth/owned-file.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import {
  type ApiKey,
  ApiKeySchema,
  CreateKeyResponseSchema,
  ListKeysResponseSchema,
  ListPoliciesResponseSchema,
  ListRolesResponseSchema,
  RevokeKeyResponseSchema,
} from "../../gen/lance/gateway/v1/access_pb.ts";
import type { AccessAdministration, Authorizer } from "../../namespace/authorizer.ts";
import { ROLE_NAMES, ROLES, type Role } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { OPERATION_NAMES, OPERATIONS } from "../../namespace/operations/operations.ts";
import type { Databases } from "../../pipeline/call/databases.ts";
import type { ConsoleIssuer, ConsoleSignIn } from "../../server/app/console-pages.ts";
import { type AccessOptions, createTryAccess } from "./try-access.ts";

/** Longest life of a key, in seconds: later times have more digits in their texts. */
const MAX_LIFETIME_SECONDS = 1_000n * 365n * 86_400n;

/** Most keys that this service keeps: each change writes the whole file. */
const MAX_KEYS = 10_000;

/** Creates the operations on the keys, roles and policies of a gateway. */
export function createAdministration(
  options: AccessOptions,
  authorizer: Authorizer | undefined,
  databases: Databases,
): AccessAdministration {
  const keys = () => readKeyFile(requireFile(options)).catch(unreadable);
  return {
    async listKeys() {
      const found = (await keys()).map(messageOf);
      return create(ListKeysResponseSchema, {
        keys: found,
        readOnlyReason: await reasonOfNoChanges(options),
      });
    },

    async createKey({ name, role, groups, scope, lifetimeSeconds }, call) {
      const file = await requireWritable(options);
      checkName(name, "name");
      for (const group of groups) checkName(group, "groups");
      for (const object of scope) {
        const fault = faultOfScope(object);
        if (fault !== undefined) throw new LanceError("InvalidInput", `scope: ${fault}`);
      }
      const seconds = lifetimeSeconds;
      if (seconds !== undefined && (seconds < 1n || seconds > MAX_LIFETIME_SECONDS))
        throw new LanceError("InvalidInput", `lifetime_seconds must be 1 to ${MAX_LIFETIME_SECONDS}`);
      if ((await keys()).length >= MAX_KEYS)
        throw new LanceError("InvalidInput", `the file of keys has ${MAX_KEYS} keys already; revoke some`);
      const lifetimeMs = seconds === undefined ? undefined : Number(seconds) * 1000;
      const choice = { name, role: roleOf(role), groups, scope, lifetimeMs };
      // The line of an attempt that failed has them, too.
      call.changedKey = { name, role, groups, scope };
      const { text: secret, facts } = await issueKey(file, choice).catch(unwritten);
      call.changedKey = facts;
      return create(CreateKeyResponseSchema, { key: messageOf(facts), secret });
    },

    async revokeKey({ id }, call) {
      const file = await requireWritable(options);
      call.changedKey = (await keys()).find((key) => key.id === id);
      if (call.changedKey === undefined || !(await revokeKey(file, id).catch(unwritten)))
        throw new LanceError("InvalidInput", `there is no key ${JSON.stringify(id)}`);
      return create(RevokeKeyResponseSchema);
    },

    async listRoles() {
      const roles = ROLE_NAMES.map((name) => ({ name, actions: [...ROLES[name]] }));
      const operations = OPERATION_NAMES.map((each) => OPERATIONS[each])
        .map(({ method, action }) => ({ name: method.name, action }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      return create(ListRolesResponseSchema, { roles, operations });
    },

    async listPolicies() {
      const decidedBy = options.opaUrl ? "opa" : authorizer === undefined ? "roles" : "cedar";
      return create(ListPoliciesResponseSchema, { decidedBy, policies: [...(authorizer?.rules?.() ?? [])] });
    },

    tryAccess: createTryAccess({ options, authorizer, databases, keys }),
  };
}

function messageOf({
  id,
  name,
  role,
  groups = [],
  scope = [],
  created,
  expires,
}: KeyFacts | KeyRecord): ApiKey {
  return create(ApiKeySchema, {
    ...{ id, name, role, groups: [...groups], scope: [...scope], created: timeOf(created) },
    ...(expires !== undefined && { expires: timeOf(expires) }),
  });
}

function timeOf(text: string) {
  return timestampFromDate(new Date(text));
}

function roleOf(name: string): Role {
  const role = ROLE_NAMES.find((each) => each === name);
  if (role !== undefined) return role;
  throw new LanceError("InvalidInput", `role must be one of ${ROLE_NAMES.join(", ")}`);
}

/** Longest name of a caller or a group, in characters. */
const MAX_NAME = 256;

function checkName(name: string, field: string): void {
  if (name.trim() === "" || name.length > MAX_NAME || /\p{Cc}/u.test(name))
    throw new LanceError(
      "InvalidInput",
      `${field} must have 1 to ${MAX_NAME} characters, and no control characters`,
    );
}

/** @throws LanceError Unsupported if callers have no keys */
function requireFile({ apiKeysFile }: AccessOptions): string {
  if (apiKeysFile !== undefined) return apiKeysFile;
  throw new LanceError(
    "Unsupported",
    "callers have no API keys here: --auth api-key and --api-keys-file are not set",
  );
}

/** Returns why the file of keys cannot be changed here; nothing if it can. */
async function reasonOfNoChanges(options: AccessOptions): Promise<string> {
  if (options.readOnly) return "the gateway is read-only";
  const file = requireFile(options);
  // The file is replaced by another one beside it, where its links lead to.
  try {
    for (const path of [dirname(await targetOf(file)), file]) await access(path, constants.W_OK);
    return "";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return `the gateway may not write the file of keys (${code}); lance-gateway keys changes it where it comes from`;
  }
}

async function requireWritable(options: AccessOptions): Promise<string> {
  const file = requireFile(options);
  const reason = await reasonOfNoChanges(options);
  if (reason !== "") throw new LanceError("Unsupported", reason);
  return file;
}

/** The text of the failure names the path of the file, which is for the log. */
function unreadable(cause: unknown): never {
  throw new LanceError("ServiceUnavailable", "the file of keys cannot be read now", { cause });
}

function unwritten(cause: NodeJS.ErrnoException): never {
  if (cause.code === undefined)
    throw new LanceError(
      "ConcurrentModification",
      "another process changes the file of keys, or has left its lock beside it, which the log names; try again",
      { cause },
    );
  throw new LanceError("ServiceUnavailable", `the file of keys cannot be written (${cause.code})`, { cause });
}

/** Options that say where the console signs in. */
type SignInOptions = Partial<Pick<ServeOptions, "oidcIssuers" | "consoleOidcClientId" | "consoleOidcScope">>;

/** Returns the issuers of tokens that have the console as a client. */
export function consoleIssuersOf({
  oidcIssuers = [],
  consoleOidcClientId,
  consoleOidcScope = "openid",
}: SignInOptions): readonly ConsoleIssuer[] {
  return oidcIssuers.flatMap(
    ({ issuer, consoleClientId: clientId = consoleOidcClientId, consoleScope: scope = consoleOidcScope }) =>
      clientId === undefined ? [] : [{ issuer, clientId, scope }],
  );
}

/** Returns how callers of a gateway sign in by the console. */
export function consoleSignInOf(
  options: SignInOptions & Partial<Pick<ServeOptions, "auth">>,
  databases: Iterable<string | undefined>,
): ConsoleSignIn {
  const { auth = [] } = options;
  const isOfTokens = auth.includes("oidc") || auth.includes("kubernetes");
  return {
    methods: [
      ...(auth.includes("api-key") ? (["api-key"] as const) : []),
      ...(isOfTokens ? (["token"] as const) : []),
    ],
    hasDatabases: Array.from(databases).filter((name) => name !== undefined).length > 1,
    issuers: consoleIssuersOf(options),
  };
}
