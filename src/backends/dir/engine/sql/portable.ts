import type { ArrowField } from "../../../../arrow/schema.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import { nameOf, type SqlToken } from "./tokens.ts";
import { isText, type SqlBracket, type SqlNode } from "./tree.ts";
import { treeSteps } from "./trees.ts";

/**
 * Functions with the same result in other versions of the engine and on other machines. test/engines/portable-values.test.ts compares
 * those that the gateway's own engine takes. Left out are functions of the time and of chance, those of Lance's own, whose versions differ, and those that the mathematical library of a
 * machine computes, such as `sin`.
 */
const FUNCTIONS = new Set(
  `
  abs ceil floor round signum sqrt trunc
  ascii bit_length btrim char_length character_length chr concat concat_ws ends_with left length lower lpad ltrim
  octet_length repeat replace reverse right rpad rtrim split_part starts_with strpos substr substring to_hex translate
  trim upper md5 sha256
  date_part date_trunc
  coalesce greatest ifnull least nullif nvl
  `
    .trim()
    .split(/\s+/),
);

const OPERATORS = new Set("+ - * / % = <> != < <= > >= and or not is in between like ilike ||".split(" "));

const CASTS = new Set(["cast", "try_cast"]);

/** Names of types that mean the same type in other versions of the engine. */
const TYPES = new Set(
  "boolean tinyint smallint int integer bigint float double string binary date decimal".split(" "),
);

const CONSTANTS = new Set(["true", "false", "null"]);

/**
 * Returns why another version of the engine could compute another value of an expression; undefined if it computes the same.
 *
 * @param fields the columns of the table
 */
export async function whyNotPortable(
  expression: string,
  fields: readonly ArrowField[],
): Promise<string | undefined> {
  const { root } = await inSlices(treeSteps(expression));
  return reasonOf(root, fields);
}

function reasonOf(node: SqlNode, fields: readonly ArrowField[]): string | undefined {
  const first = (nodes: readonly SqlNode[]) => {
    for (const each of nodes) {
      const reason = reasonOf(each, fields);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
  switch (node.kind) {
    case "number":
      return undefined;
    case "quoted":
      return isText(node) ? undefined : reasonOfColumn(node, fields);
    case "word":
      return CONSTANTS.has(node.word) ? undefined : reasonOfColumn(node, fields);
    case "operation":
      return OPERATORS.has(node.operator) ? first(node.operands) : `the operator ${node.operator}`;
    case "bracket":
      return reasonOfBracket(node) ?? first(isCast(node) ? castOf(node).value : node.items);
    case "path":
      return "fields of structs";
    default:
      return "a part of its syntax";
  }
}

function reasonOfBracket(node: SqlBracket): string | undefined {
  if (node.opening !== "(" || node.isQuery) return "a part of its syntax";
  if (isCast(node)) return TYPES.has(castOf(node).type) ? undefined : "the type of a cast";
  const name = node.name?.text.toLowerCase();
  return name === undefined || FUNCTIONS.has(name) ? undefined : `the function ${name}`;
}

function isCast({ name }: SqlBracket): boolean {
  return name !== undefined && CASTS.has(name.text.toLowerCase());
}

/** Returns the value of a cast, and the name of its type; an empty name for any other syntax. */
function castOf({ items: [only, ...more] }: SqlBracket): { value: readonly SqlNode[]; type: string } {
  const [value, as, type, ...rest] = only?.kind === "sequence" ? only.parts : [];
  const isWhole = more.length === 0 && rest.length === 0 && as?.kind === "word" && as.word === "as";
  if (!isWhole || value === undefined || type === undefined) return { value: [], type: "" };
  const named = type.kind === "bracket" ? type.name : type.kind === "word" ? type : undefined;
  return { value: [value], type: named?.text.toLowerCase() ?? "" };
}

function reasonOfColumn(token: SqlToken, fields: readonly ArrowField[]): string | undefined {
  const name = nameOf(token);
  const isQuoted = token.kind === "quoted" && !token.text.startsWith("`");
  const field = isQuoted ? undefined : fields.find((each) => each.name === name);
  if (field === undefined) return `the word ${name.slice(0, 64)}`;
  return isPlain(field) ? undefined : `the column ${name}`;
}

/** Whether a column is without children, dictionary and the meanings that extensions give. */
export function isPlain({ type, children, dictionary, metadata }: ArrowField): boolean {
  const isOther = type.name === "float" && type.bits === 16;
  return !isOther && children.length === 0 && dictionary === undefined && !hasMeaning(metadata);
}

/** Whether the metadata of a column change how its values are stored or read. */
export function hasMeaning(metadata: ArrowField["metadata"]): boolean {
  return Object.keys(metadata).some((key) => /^(?:lance(?!_gateway)|ARROW:extension)/.test(key));
}
