import { faultOfScope, issueKey, readKeyFile, revokeKey } from "../../../auth/api-keys/key-file.ts";
import { readTable } from "../../../config/layers.ts";
import { type OptionTable, type OptionValues, UsageError } from "../../../config/option-spec.ts";
import { parseAge, parseChoice, parseText } from "../../../config/parsers.ts";
import { ROLE_NAMES } from "../../../namespace/call/principal.ts";
import { confirm, YES_OPTION } from "../../terminal/confirm.ts";
import { jsonText } from "../../terminal/terminal-text.ts";
import { JSON_OPTION } from "../catalog.ts";
import { type CommandDefinition, refuseUnused } from "../command.ts";
import { textTable } from "../text-table.ts";

function parseScope(text: string): string {
  const fault = faultOfScope(text);
  if (fault === undefined) return text;
  throw new UsageError(`must be an object such as sales$raw (${fault})`);
}

const OPTIONS = {
  file: {
    flag: "file",
    value: "FILE",
    help: "File of keys, the same as for serve --api-keys-file. A missing one is created, readable by its owner alone.",
    parse: parseText,
  },
  name: {
    flag: "name",
    value: "NAME",
    help: "Name of the caller, for create. Several keys may have the same name.",
    parse: parseText,
  },
  role: {
    flag: "role",
    value: "ROLE",
    help: "Role of the caller, for create (docs/security.md).",
    parse: parseChoice(ROLE_NAMES),
  },
  groups: {
    flag: "group",
    value: "NAME",
    help: "Group of the caller, for create.",
    parse: parseText,
    repeatable: true,
  },
  scope: {
    flag: "scope",
    value: "ID",
    help: "Object that the key is restricted to, with everything below it, for create, such as sales$raw; the database comes first if databases have names. Default: everything.",
    parse: parseScope,
    repeatable: true,
  },
  expires: {
    flag: "expires",
    value: "AGE",
    help: "Time after which the gateway refuses the key, for create, such as 12h or 90d. Default: never.",
    parse: parseAge,
  },
  yes: YES_OPTION,
  json: JSON_OPTION,
} as const satisfies OptionTable;

type Options = OptionValues<typeof OPTIONS>;

/** An action on a file of keys; it returns what to print. */
type Act = (file: string, options: Options, id: string | undefined) => Promise<string>;

const ACTIONS: Readonly<Record<string, Act>> = {
  async create(file, { name, role, groups, scope, expires, json }) {
    if (name === undefined) throw new UsageError("create requires --name");
    if (role === undefined) throw new UsageError("create requires --role");
    const { text, facts } = await issueKey(file, { name, role, groups, scope, lifetimeMs: expires });
    return json ? jsonText({ key: text, ...facts }) : `${text}\n`;
  },

  async list(file, { json }) {
    // A hash is of no use to a reader, and of some to a thief.
    const keys = (await readKeyFile(file)).map(({ hash: _, ...facts }) => facts);
    if (json) return jsonText({ keys });
    const rows = keys.map(({ id, name, role, groups = [], scope, created, expires = "never" }) => [
      ...[id, name, role, groups.join(" "), scope?.join(" ") ?? "everything"],
      ...[created, expires],
    ]);
    return textTable([["ID", "NAME", "ROLE", "GROUPS", "SCOPE", "CREATED", "EXPIRES"], ...rows]);
  },

  async revoke(file, { json, yes }, id) {
    if (id === undefined) throw new UsageError("revoke needs the id of a key, which list shows");
    if (!yes) await confirm(`Revoke the key ${id}`);
    if (!(await revokeKey(file, id))) throw new Error(`${file} has no key ${id}`);
    return json ? jsonText({ id }) : `revoked ${id}\n`;
  },
};

/** Options of each action. */
const USED: Readonly<Record<string, readonly (keyof Options)[]>> = {
  create: ["file", "name", "role", "groups", "scope", "expires", "json"],
  list: ["file", "json"],
  revoke: ["file", "yes", "json"],
};

/** `lance-gateway keys`: creates, lists and revokes the API keys of a file. */
export const keys: CommandDefinition = {
  operands: "<create|list|revoke> [ID]",
  groups: [{ heading: "Options", options: OPTIONS, environment: false }],
  async run({ operands: [name = "", id], layers }) {
    const options = readTable(OPTIONS, layers);
    const act = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (act === undefined) throw new UsageError(`keys does one of ${Object.keys(ACTIONS).join(", ")}`);
    refuseUnused(`keys ${name}`, OPTIONS, USED[name] ?? [], layers);
    if (id !== undefined && name !== "revoke") throw new UsageError(`keys ${name} takes no ID`);
    if (options.file === undefined) throw new UsageError("--file is missing");
    process.stdout.write(await act(options.file, options, id));
    return 0;
  },
};
