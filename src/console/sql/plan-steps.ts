import type { PlanStep } from "../query/plan.ts";

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
