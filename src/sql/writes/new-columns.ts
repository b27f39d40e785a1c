import { LanceError } from "../../namespace/errors.ts";
import { isWord, positionAt, type Token, type TokenReader } from "./tokens.ts";
import type { NewColumn } from "./write-statement.ts";

/** Words behind the type of a column that the catalog has no counterpart for. */
const REFUSED = [
  "PRIMARY",
  "UNIQUE",
  "DEFAULT",
  "CHECK",
  "REFERENCES",
  "COLLATE",
  "GENERATED",
  "AS",
  "USING",
];

/** Words that begin a rule of the whole table. */
const RULES = ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"];

/**
 * Reads the columns of CREATE TABLE, in parentheses.
 *
 * @throws LanceError InvalidInput for something else, Unsupported for rules such as keys and defaults
 */
export function readColumns(statement: string, tokens: TokenReader): readonly NewColumn[] {
  tokens.expect("(");
  const columns: NewColumn[] = [];
  const names = new Set<string>();
  do {
    const column = readColumn(statement, tokens);
    if (names.size === names.add(column.name.toLowerCase()).size)
      throw new LanceError("InvalidInput", `the new table has the column "${column.name}" twice`);
    columns.push(column);
  } while (tokens.accept(","));
  tokens.expect(")");
  return columns;
}

function readColumn(statement: string, tokens: TokenReader): NewColumn {
  if (RULES.some((word) => isWord(tokens.next, word))) throw refused(statement, tokens.next);
  const name = tokens.name("the name of a column");
  const { start } = tokens.next;
  let end = start;
  for (let depth = 0; !endsType(tokens.next, depth); ) {
    const token = tokens.take();
    if (token.kind === "end") throw tokens.unexpected('")"');
    if (token.kind === "mark" && !"()[],.".includes(token.text)) throw refused(statement, token);
    if (isWord(token, "(")) depth++;
    if (isWord(token, ")")) depth--;
    end = token.end;
  }
  if (end === start) throw tokens.unexpected(`the type of the column "${name}"`);
  const isRequired = tokens.accept("NOT", "NULL");
  if (!isRequired) tokens.accept("NULL");
  if (!isWord(tokens.next, ",") && !isWord(tokens.next, ")")) throw refused(statement, tokens.next);
  return { name, type: statement.slice(start, end), isNullable: !isRequired };
}

function endsType(token: Token, depth: number): boolean {
  if (depth > 0) return false;
  return [",", ")", "NOT", "NULL", ...REFUSED].some((word) => isWord(token, word));
}

function refused(statement: string, { text, start }: Token): LanceError {
  const at = positionAt(statement, start);
  return new LanceError("Unsupported", `"${text}" of a new table is not supported at position ${at}`);
}
