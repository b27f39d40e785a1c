import type { ArrowField } from "../../arrow/schema.ts";
import type { SqlSearch } from "../sql-engine.ts";
import { type ColumnNamed, exactFilterOf, filterOf } from "./filters.ts";
import { placeOf } from "./tables.ts";
import type { TreeNode } from "./tree.ts";

/** What the scan of a place reads less of. The statement keeps its conditions and limits, so that a scan may return too much, and never too little. */
export interface Pushed {
  readonly filter?: string;
  readonly limit?: number;
}

/** Something that stands behind FROM. */
interface Source {
  /** Name by which columns name it, in lower case. */
  readonly alias: string;
  /** Its columns by their names in lower case. Default: they are not known. */
  readonly columns: ReadonlyMap<string, ArrowField> | undefined;
  /** Whether the query gives its columns other names. */
  readonly isRenamed: boolean;
  /** Place of the scan. Default: it is not a scan. */
  readonly place: number | undefined;
  /** Whether a condition of the query for its rows holds for the rows of the scan. */
  readonly takesFilters: boolean;
  /** Whether the query reads a sample of the scan, which must then have all rows. */
  readonly isSampled: boolean;
  /** The search in place of a table. Default: there is none. */
  readonly search: SqlSearch | undefined;
  /** Conditions of inner joins around it that hold for a part of the query alone. */
  readonly held: TreeNode[];
}

/** What is known about the table at a place. */
interface Placed {
  readonly fields: readonly ArrowField[];
  readonly search?: SqlSearch | undefined;
}

/** What stands behind FROM as a whole. */
interface Sources {
  readonly all: Source[];
  /** Conditions of inner joins. */
  readonly conditions: TreeNode[];
  /** Names of columns that joins merge; "all" if the joins tell no names. */
  merged: Set<string> | "all";
}

/**
 * Returns what each scan of a statement leaves out.
 *
 * @param tableAt returns the table at a place
 * @throws LanceError Unsupported for a condition that cannot hold before a search, and has to
 */
export function pushedInto(
  statement: TreeNode,
  tableAt: (place: number) => Placed,
): ReadonlyMap<number, Pushed> {
  const pushed = new Map<number, Pushed>();
  visit(statement);
  return pushed;

  function visit(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    const node = value as TreeNode;
    if (node["type"] === "SELECT_NODE") pushInto(node, node["sample"] === null);
    for (const child of Object.values(node)) visit(child);
  }

  /** @param takesAny whether the query reads all rows of its sources, and no sample */
  function pushInto(query: TreeNode, takesAny: boolean): void {
    const sources: Sources = { all: [], conditions: [], merged: new Set() };
    collect(query["from_table"] as TreeNode, takesAny, sources);
    if (sources.all.every(({ place }) => place === undefined)) return;
    const conditions = conjunctsOf(query["where_clause"]).concat(sources.conditions);
    for (const source of sources.all) {
      if (source.place === undefined) continue;
      const column = (names: readonly string[]) => columnOf(names, source, sources);
      const filter = filterInto(source, sources, query, conditions, column);
      const takesLimit =
        takesAny && sources.all.length === 1 && !source.isSampled && source.search === undefined;
      const limit = takesLimit ? limitOf(query) : undefined;
      if (filter !== undefined || limit !== undefined)
        pushed.set(source.place, {
          ...(filter !== undefined && { filter }),
          ...(limit !== undefined && { limit }),
        });
    }
  }

  function filterInto(
    source: Source,
    sources: Sources,
    query: TreeNode,
    conditions: readonly TreeNode[],
    column: ColumnNamed,
  ): string | undefined {
    const { takesFilters, search } = source;
    if (search === undefined) return takesFilters ? filterOf(conditions, column) : undefined;
    if (!search.isPrefilter) return undefined;
    const aliases = aliasesIn(query);
    const namesIt = (part: TreeNode) =>
      mayName(part, source, sources, aliases) && !joins(part, source, sources);
    // Which rows are found depends on the condition, so that no part of it may be left out.
    const held = source.held.filter(namesIt);
    const children = held.concat(conditions.filter(namesIt));
    if (children.length === 0) return undefined;
    const all = { type: "CONJUNCTION_AND", children };
    return exactFilterOf(all, takesFilters && held.length === 0 ? column : () => undefined, PREFILTERED);
  }

  function collect(node: TreeNode, takesFilters: boolean, sources: Sources): void {
    if (node["type"] === "JOIN") {
      collectJoin(node, takesFilters, sources);
      return;
    }
    // Conditions are about what it makes of its source.
    if (node["type"] === "PIVOT") collect(node["source"] as TreeNode, false, sources);
    const place = placeOf(node);
    const isRenamed = ((node["column_name_alias"] ?? []) as readonly string[]).length > 0;
    const isSampled = node["sample"] !== null;
    const isWhole = !isSampled && !isRenamed;
    const { function_name: called } = (node["function"] ?? {}) as TreeNode;
    sources.all.push({
      alias: String(node["alias"] || node["table_name"] || called || "").toLowerCase(),
      columns: place === undefined || !isWhole ? undefined : columnsAt(place),
      search: place === undefined ? undefined : tableAt(place).search,
      place,
      takesFilters: takesFilters && isWhole,
      ...{ isRenamed, isSampled, held: [] },
    });
  }

  function collectJoin(node: TreeNode, takesFilters: boolean, sources: Sources): void {
    const { left, right, condition, join_type: type, ref_type: form } = node;
    const isPart = node["alias"] === "" && node["sample"] === null;
    const isPlain = isPart && (form === "REGULAR" || form === "CROSS" || form === "NATURAL");
    const isInner = isPlain && type === "INNER";
    // A row that an outer join fills up with nulls takes the place of rows that a filter would remove.
    const keepsLeft = isInner || (isPlain && (type === "LEFT" || type === "SEMI" || type === "ANTI"));
    const keepsRight = isInner || (isPlain && type === "RIGHT");
    const first = sources.all.length;
    collect(left as TreeNode, takesFilters && keepsLeft, sources);
    collect(right as TreeNode, takesFilters && keepsRight, sources);
    if (form === "NATURAL") sources.merged = "all";
    for (const name of node["using_columns"] as readonly string[])
      if (sources.merged !== "all") sources.merged.add(name.toLowerCase());
    if (isInner && takesFilters) sources.conditions.push(...conjunctsOf(condition));
    else if (form === "REGULAR" && type === "INNER")
      for (const { held } of sources.all.slice(first)) held.push(...conjunctsOf(condition));
  }

  function columnsAt(place: number): ReadonlyMap<string, ArrowField> {
    const { fields, search } = tableAt(place);
    const own = fields.filter(({ name }) => name !== search?.score);
    return new Map(own.map((field) => [field.name.toLowerCase(), field]));
  }
}

/** Returns the column of a source that a name means; undefined if it means, or may mean, something else. */
function columnOf(
  names: readonly string[],
  source: Source,
  { all, merged }: Sources,
): ArrowField | undefined {
  const [first = "", second] = names.map((name) => name.toLowerCase());
  if (names.length === 2) {
    const isOnly = all.filter(({ alias }) => alias === first).length === 1;
    return isOnly && source.alias === first ? source.columns?.get(second as string) : undefined;
  }
  if (names.length !== 1 || merged === "all" || merged.has(first)) return undefined;
  const others = all.filter((other) => other !== source);
  const isOwn = others.every(({ columns }) => columns !== undefined && !columns.has(first));
  return isOwn ? source.columns?.get(first) : undefined;
}

const PREFILTERED =
  'a condition for a search with "prefilter" compares columns with values, and holds for a row of it alone; its argument "filter" takes every condition of a query';

/** Expressions that a query gives names to, by these names in lower case; the first one of a name. Its conditions may name them. */
type Aliases = ReadonlyMap<string, TreeNode>;

function aliasesIn(query: TreeNode): Aliases {
  const named = (query["select_list"] as readonly TreeNode[])
    .filter(({ alias }) => alias !== "")
    .toReversed();
  return new Map(named.map((expression) => [String(expression["alias"]).toLowerCase(), expression]));
}

/**
 * Whether a condition may name a column of a table, or its row. The score of a search does not count.
 *
 * @param seen aliases that are looked at already
 */
function mayName(
  value: unknown,
  source: Source,
  sources: Sources,
  aliases: Aliases,
  seen: Set<string> = new Set(),
): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { class: kind, column_names: names } = value as TreeNode;
  if (kind === "COLUMN_REF") {
    const lower = (names as readonly string[]).map((name) => name.toLowerCase());
    if (mayBeColumn(lower, source, sources)) return true;
    const [first = ""] = lower;
    const expression = seen.has(first) ? undefined : aliases.get(first);
    seen.add(first);
    return mayName(expression, source, sources, aliases, seen);
  }
  // The second kind is a choice of columns, and the third counts the expressions of the query.
  if (kind === "SUBQUERY" || kind === "STAR" || kind === "POSITIONAL_REFERENCE") return true;
  return Object.values(value).some((child) => mayName(child, source, sources, aliases, seen));
}

/** Whether a condition compares a table with another one, by columns that only the other one has, so that it joins rows that are found. */
function joins(value: unknown, source: Source, sources: Sources): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { class: kind, column_names: names } = value as TreeNode;
  if (kind === "SUBQUERY") return false;
  if (kind !== "COLUMN_REF") return Object.values(value).some((child) => joins(child, source, sources));
  const lower = (names as readonly string[]).map((name) => name.toLowerCase());
  return (
    !mayBeColumn(lower, source, sources) &&
    sources.all.some((other) => other !== source && isColumnOf(lower, other))
  );
}

/** Whether a name is sure to mean a column of a table. @param names in lower case */
function isColumnOf([first = "", second]: readonly string[], { alias, columns }: Source): boolean {
  return second === undefined ? columns?.has(first) === true : first === alias;
}

/** @param names in lower case */
function mayBeColumn([first = "", second]: readonly string[], source: Source, { all }: Sources): boolean {
  const { alias, columns, isRenamed, search } = source;
  const isScore = (name: string) => !isRenamed && name === search?.score;
  if (first === alias) return second === undefined || !isScore(second);
  if (columns !== undefined) return columns.has(first);
  const isOther = second !== undefined && all.some((other) => other !== source && other.alias === first);
  return !isOther && !isScore(first);
}

/** Returns the parts of a condition that all have to hold. */
function conjunctsOf(condition: unknown): TreeNode[] {
  if (condition === null || condition === undefined) return [];
  const node = condition as TreeNode;
  return node["type"] === "CONJUNCTION_AND" ? (node["children"] as unknown[]).flatMap(conjunctsOf) : [node];
}

/** Largest limit that a scan is told. */
const MAX_LIMIT = 1_000_000;

/** Returns how many rows of its only table are enough for a query; undefined for a query that does not pass rows on one by one. */
function limitOf(query: TreeNode): number | undefined {
  const { modifiers, where_clause: where, select_list: list } = query;
  const [modifier, ...others] = modifiers as readonly TreeNode[];
  if (modifier?.["type"] !== "LIMIT_MODIFIER" || others.length > 0 || where !== null) return undefined;
  const isGrouped =
    (query["group_expressions"] as unknown[]).length > 0 ||
    (query["group_sets"] as unknown[]).length > 0 ||
    query["aggregate_handling"] !== "STANDARD_HANDLING" ||
    query["having"] !== null ||
    query["qualify"] !== null;
  if (isGrouped || !isRowByRow(list)) return undefined;
  const [limit, offset] = [wholeNumber(modifier["limit"]), wholeNumber(modifier["offset"] ?? ZERO)];
  const rows = (limit ?? Number.NaN) + (offset ?? Number.NaN);
  return rows > 0 && rows <= MAX_LIMIT ? rows : undefined;
}

const ZERO = { class: "CONSTANT", value: { is_null: false, value: 0 } };

function wholeNumber(expression: unknown): number | undefined {
  const { class: kind, value: constant } = expression as TreeNode;
  if (kind !== "CONSTANT") return undefined;
  const { value } = constant as TreeNode;
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** Whether expressions are sure to have one value for each row. Functions other than operators may be aggregates, or make several rows of one. */
function isRowByRow(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  const { class: kind, is_operator: isOperator } = value as TreeNode;
  if (kind === "WINDOW" || kind === "SUBQUERY" || (kind === "FUNCTION" && isOperator !== true)) return false;
  return Object.values(value).every(isRowByRow);
}
