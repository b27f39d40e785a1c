import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { accessOf, type Case, type Question, readCases } from "../../../auth/cedar/cases.ts";
import { createDecider, type Decider, reasonOf } from "../../../auth/cedar/decide.ts";
import { readPolicies, rolePolicies } from "../../../auth/cedar/read-policies.ts";
import { type Cedar, loadCedar } from "../../../auth/cedar/schema.ts";
import { readConfigFile } from "../../../config/config-file.ts";
import { readTable } from "../../../config/layers.ts";
import { type OptionTable, type OptionValues, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseText } from "../../../config/parsers.ts";
import type { Decision } from "../../../namespace/authorizer.ts";
import { ROLE_NAMES } from "../../../namespace/call/principal.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { JSON_OPTION } from "../catalog.ts";
import { type CommandDefinition, refuseUnused } from "../command.ts";

const OPTIONS = {
  dir: {
    flag: "dir",
    value: "DIR",
    help: "Directory of policies, the same as for serve --policy-dir. For check and test, the operand can name it.",
    parse: parseText,
  },
  principal: {
    flag: "principal",
    value: "CALLER",
    help: "Proof and name of the caller, for explain, such as api-key:etl.",
    parse: parseText,
  },
  role: {
    flag: "role",
    value: "ROLE",
    help: "Role of the caller, for explain. Default: none.",
    parse: parseChoice(ROLE_NAMES),
  },
  group: {
    flag: "group",
    value: "GROUP",
    help: "Group of the caller, for explain.",
    parse: parseText,
    repeatable: true,
  },
  claim: {
    flag: "claim",
    value: "NAME=TEXT",
    help: "Claim of the caller, for explain.",
    parse: parsePair,
    repeatable: true,
  },
  action: {
    flag: "action",
    value: "OPERATION",
    help: "Operation of the contract, for explain, such as QueryTable.",
    parse: parseText,
  },
  object: {
    flag: "object",
    value: "OBJECT",
    help: "Names of the object, joined by $, for explain. Default: the database.",
    parse: parseText,
  },
  database: {
    flag: "database",
    value: "NAME",
    help: "Database of the object, for explain, where the gateway has several.",
    parse: parseText,
  },
  property: {
    flag: "property",
    value: "NAME=TEXT",
    help: "Property of the object, for explain.",
    parse: parsePair,
    repeatable: true,
    named: true,
  },
  json: JSON_OPTION,
} as const satisfies OptionTable;

type Options = OptionValues<typeof OPTIONS>;

/** Text to print, and the exit code. */
type Outcome = readonly [text: string, code: number];

const ACTIONS: Readonly<Record<string, (directory: string, options: Options) => Promise<Outcome>>> = {
  async check(directory, { json }) {
    const { length } = await readPolicies(await loadCedar(), directory);
    if (json) return [`${JSON.stringify({ policies: length })}\n`, 0];
    return [`${length} ${length === 1 ? "policy" : "policies"}\n`, 0];
  },

  async test(directory, { json }) {
    const decider = await deciderOf(directory);
    const cases = await casesOf(directory);
    const failures = cases.flatMap((each) => failureOf(decider, each));
    const passed = cases.length - failures.length;
    const code = failures.length > 0 ? 1 : 0;
    if (json) return [`${JSON.stringify({ cases: cases.length, passed, failures })}\n`, code];
    const lines = failures.map(({ name, message }) => `FAIL ${name}: ${message}\n`);
    return [[...lines, `${passed} of ${cases.length} cases pass\n`].join(""), code];
  },

  async explain(directory, options) {
    const { principal, action, role, group: groups, claim, object, database, property } = options;
    if (principal === undefined || action === undefined) {
      throw new UsageError("explain requires --principal and --action");
    }
    const claims = Object.fromEntries(Map.groupBy(claim, ([name]) => name));
    const texts = Object.fromEntries(
      Object.entries(claims).map(([name, pairs = []]) => [name, pairs.map(([, text]) => text)]),
    );
    const question = {
      ...{ principal, action, role, groups, claims: texts, object, database },
      properties: Object.fromEntries(property),
    };
    checkQuestion(question);
    const decision = decide(await deciderOf(directory), question);
    const code = decision.allowed ? 0 : 1;
    if (options.json) return [`${JSON.stringify(decision)}\n`, code];
    return [`${decision.allowed ? "allow" : "deny"}: ${reasonOf(decision)}\n`, code];
  },
};

/** Options of the actions that do not take all. */
const USED: Readonly<Record<string, readonly (keyof Options)[]>> = {
  check: ["dir", "json"],
  test: ["dir", "json"],
  "print-roles": [],
};

/** `lance-gateway policy`: checks, tests and explains the policies of a directory, and prints those of the roles. */
export const policy: CommandDefinition = {
  operands: "<check|test|explain|print-roles> [DIR]",
  groups: [{ heading: "Options", options: OPTIONS, environment: false }],
  async run({ operands: [name = "", operand], layers }) {
    refuseUnused(`policy ${name}`, OPTIONS, USED[name] ?? Object.keys(OPTIONS), layers);
    if (name === "print-roles") {
      if (operand !== undefined) throw new UsageError("policy print-roles takes no DIR");
      process.stdout.write(rolePolicies());
      return 0;
    }
    const options = readTable(OPTIONS, layers);
    const act = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (act === undefined)
      throw new UsageError(`policy does one of ${Object.keys(ACTIONS).join(", ")}, print-roles`);
    if (operand !== undefined && options.dir !== undefined)
      throw new UsageError("DIR and --dir both name the directory of the policies; give one of them");
    const directory = operand ?? options.dir;
    if (directory === undefined) throw new UsageError(`policy ${name} needs the directory of the policies`);
    const [text, code] = await act(directory, options);
    process.stdout.write(text);
    return code;
  },
};

async function deciderOf(directory: string): Promise<Decider> {
  const cedar: Cedar = await loadCedar();
  return createDecider(cedar, await readPolicies(cedar, directory));
}

/** Tells wrong options from a decision that denies, by the exit code. */
function checkQuestion(question: Question): void {
  try {
    accessOf(question);
  } catch (error) {
    const at = error instanceof LanceError ? "object: " : "";
    throw new UsageError(`--${at}${(error as Error).message}`);
  }
}

function decide(decider: Decider, question: Question): Decision {
  const { principal, access } = accessOf(question);
  return decider.explain(principal, access, question.properties);
}

function failureOf(decider: Decider, { name, question, expect }: Case): { name: string; message: string }[] {
  const decision = decide(decider, question);
  if (decision.allowed === (expect === "allow")) return [];
  return [{ name, message: `expected ${expect}; ${reasonOf(decision)}` }];
}

/** Files of cases beside the policies. */
const CASES = /\.test\.(?:json|ya?ml)$/;

async function casesOf(directory: string): Promise<readonly Case[]> {
  const files = (await readdir(directory)).filter((name) => CASES.test(name)).sort();
  if (files.length === 0) throw new Error(`${directory} has no file *.test.json or *.test.yaml`);
  const cases = files.map(async (file) =>
    readCases((await readConfigFile(join(directory, file))).entries, file),
  );
  return (await Promise.all(cases)).flat();
}

function parsePair(text: string): readonly [name: string, text: string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError("must be NAME=TEXT");
  return [text.slice(0, at), text.slice(at + 1)];
}
