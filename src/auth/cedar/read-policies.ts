import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import type { DetailedError } from "@cedar-policy/cedar-wasm/nodejs";
import { ROLE_NAMES, ROLES } from "../../namespace/call/principal.ts";
import { namesIn, readText, statFile } from "../../runtime/files/files-in-time.ts";
import { inSlices, type Steps } from "../../runtime/pace.ts";
import { type Policy, policyOf } from "./policy.ts";
import { type Cedar, SCHEMA, textOf } from "./schema.ts";

/** Extension of the files with policies. */
const EXTENSION = ".cedar";

/** Policies that are checked at a time: reading the schema takes as long as checking some twenty. */
const CHECKED = 32;

/** Largest file of policies, in bytes. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** Returns the paths of the files with policies in a directory, in the order of their names. */
export async function policyFiles(directory: string): Promise<string[]> {
  const names = await namesIn(directory);
  return names
    .filter((name) => name.endsWith(EXTENSION))
    .sort()
    .map((name) => join(directory, name));
}

/**
 * Reads the policies of a directory, and checks them against the schema.
 *
 * @throws Error with a single line for each mistake of the first group that has any: the policy and the reason.
 */
export async function readPolicies(cedar: Cedar, directory: string): Promise<readonly Policy[]> {
  const files = await policyFiles(directory);
  // Nothing would be allowed, which is hardly what somebody meant who has given a directory.
  if (files.length === 0) throw new Error(`${directory} has no file *${EXTENSION}`);
  const policies: Policy[] = [];
  const mistakes: string[] = [];
  for (const file of files) {
    const { size } = await statFile(file);
    if (size > MAX_FILE_BYTES) throw new Error(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
    const text = await readText(file);
    // A gateway that reads its policies again answers calls meanwhile.
    const read = await inSlices(parsePolicies(cedar, text, file.slice(directory.length + 1)));
    for (const policy of read.policies) policies.push(policy);
    mistakes.push(...read.mistakes);
  }
  for (const name of doubledNames(policies))
    mistakes.push(`two policies have the name ${JSON.stringify(name)}`);
  for (let i = 0; mistakes.length === 0 && i < policies.length; i += CHECKED) {
    mistakes.push(...checkPolicies(cedar, policies.slice(i, i + CHECKED)));
    await turn();
  }
  if (mistakes.length > 0) throw new Error(mistakes.join("\n"));
  return policies;
}

interface ParsedFile {
  readonly policies: readonly Policy[];
  readonly mistakes: readonly string[];
}

/** Parses the text of a file, in steps: one takes the library about 0.2 ms for a policy, and 10 ms for a long text. */
export function* parsePolicies(cedar: Cedar, text: string, file: string): Steps<ParsedFile> {
  const policies: Policy[] = [];
  const mistakes: string[] = [];
  let before = 0;
  const note = (at: string, error: DetailedError) => mistakes.push(`${at}: ${textOf(error)}`);
  for (const part of policyParts(text)) {
    yield;
    const parts = cedar.policySetTextToParts(part.text);
    if (parts.type === "failure") {
      for (const error of parts.errors) note(`${file}${lineOf(part, error)}`, error);
      // The places of later policies are not known.
      break;
    }
    if (parts.policy_templates.length > 0)
      mistakes.push(`${file}: templates (?principal, ?resource) are not supported`);
    const own: Policy[] = [];
    for (const [i, place] of placesOf(parts.policies.length).entries()) {
      yield;
      const policy = parts.policies[i] as string;
      const converted = cedar.policyToJson(policy);
      const at = `${file}#${before + place}`;
      if (converted.type === "failure") for (const error of converted.errors) note(at, error);
      else own[place - 1] = policyOf(converted.json.annotations?.["id"] ?? at, policy, converted.json);
    }
    for (const policy of own) if (policy !== undefined) policies.push(policy);
    before += parts.policies.length;
  }
  return { policies, mistakes };
}

function doubledNames(policies: readonly Policy[]): ReadonlySet<string> {
  const [names, doubled] = [new Set<string>(), new Set<string>()];
  for (const { name } of policies) (names.has(name) ? doubled : names).add(name);
  return doubled;
}

/**
 * Returns what is wrong with policies by the schema, which the library reads once for all of them. A policy that can
 * never apply is a mistake, too.
 */
function checkPolicies(cedar: Cedar, policies: readonly Policy[]): readonly string[] {
  const answer = cedar.validate({
    schema: SCHEMA,
    policies: { staticPolicies: Object.fromEntries(policies.map(({ name, text }) => [name, text])) },
    validationSettings: { mode: "strict" },
  });
  if (answer.type === "failure") return answer.errors.map((error) => textOf(error));
  const found = [...answer.validationErrors, ...answer.validationWarnings];
  const byPolicy = Map.groupBy(found, ({ policyId }) => policyId);
  // An error is the reason of the warnings beside it.
  return [...byPolicy].map(([name, [first]]) => `${name}: ${first === undefined ? "" : textOf(first.error)}`);
}

/** Returns the places of policies in their file; the library sorts them by the texts `policy0`, `policy1`, … */
function placesOf(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1).sort((a, b) => {
    const [first, second] = [`policy${a - 1}`, `policy${b - 1}`];
    return first < second ? -1 : 1;
  });
}

function lineOf({ text, line }: PolicyPart, { sourceLocations: [location] = [] }: DetailedError): string {
  if (location === undefined) return "";
  const before = Buffer.from(text).subarray(0, location.start).toString();
  return `:${line + before.split("\n").length}`;
}

/** A part of a text of policies: whole policies, and what stands between them. */
interface PolicyPart {
  readonly text: string;
  /** Number of lines that end before it. */
  readonly line: number;
}

/** Length of a part, in characters: the library parses it in about 10 ms. */
const PART_LENGTH = 64 * 1024;

/**
 * Splits a text of policies behind the semicolons that end them, because the library parses a text in a single step. A text with
 * a mistake is split, too; its parts have the mistake.
 *
 * @param length least length of a part, in characters. Default: 64 Ki.
 */
export function* policyParts(text: string, length = PART_LENGTH): Iterable<PolicyPart> {
  const special = /[;"]|\/\//g;
  let [start, line] = [0, 0];
  for (let found = special.exec(text); found !== null; found = special.exec(text)) {
    const end = special.lastIndex;
    if (found[0] === "//") special.lastIndex = endOfLine(text, end);
    else if (found[0] === '"') special.lastIndex = endOfString(text, end);
    else if (end - start >= length) {
      const part = { text: text.slice(start, end), line };
      yield part;
      start = end;
      line += part.text.split("\n").length - 1;
    }
  }
  yield { text: text.slice(start), line };
}

function endOfLine(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at === -1 ? text.length : at;
}

function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at += 1;
  }
  return text.length;
}

/** Returns the policies that allow what the roles allow where no policies decide; the role `none` needs no policy. */
export function rolePolicies(): string {
  const policies = ROLE_NAMES.filter((role) => ROLES[role].length > 0).map((role) => {
    const actions = ROLES[role].map((action) => `Action::"${action}"`).join(", ");
    return `@id("role-${role}")\npermit (\n  principal in Role::"${role}",\n  action in [${actions}],\n  resource\n);\n`;
  });
  return policies.join("\n");
}
