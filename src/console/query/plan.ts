/** A step of a query's plan. */
export interface PlanStep {
  /** Kind of the step, such as `FilterExec`. */
  readonly name: string;
  /** Rest of its line. */
  readonly detail: string;
  /** Steps whose rows it takes. */
  readonly inputs: readonly PlanStep[];
}

interface Growing extends PlanStep {
  readonly inputs: Growing[];
}

/** Reads the plan of a query, in which a step takes the rows of the steps below it that are further to the right. */
export function parsePlan(text: string): readonly PlanStep[] {
  const roots: Growing[] = [];
  const above: { readonly indent: number; readonly step: Growing }[] = [];
  for (const line of text.split("\n")) {
    const content = line.trim();
    if (content === "") continue;
    const indent = line.length - line.trimStart().length;
    const [, name = content, detail = ""] = /^([\w.]+)[:,]?\s*(.*)$/.exec(content) ?? [];
    const step: Growing = { name, detail, inputs: [] };
    while (above.length > 0 && (above.at(-1)?.indent ?? 0) >= indent) above.pop();
    (above.at(-1)?.step.inputs ?? roots).push(step);
    above.push({ indent, step });
  }
  return roots;
}

/** A step of a plan as DuckDB describes it. */
interface Described {
  readonly name?: string;
  readonly extra_info?: Readonly<Record<string, unknown>>;
  readonly children?: readonly Described[];
}

/** Reads the plan of a statement. Names of tables are those that the statement has. */
export function stepsOf(json: string): readonly PlanStep[] {
  return (JSON.parse(json) as readonly Described[]).map(stepOf);
}

function stepOf({ name = "", extra_info: facts = {}, children = [] }: Described): PlanStep {
  const texts = Object.entries(facts).flatMap(([fact, value]) => {
    const text = [value].flat().map(String).join(", ");
    return text === "" ? [] : [`${fact}: ${text}`];
  });
  return { name: name.trim(), detail: texts.join("; "), inputs: children.map(stepOf) };
}
