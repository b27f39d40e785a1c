/** The plan of a query as a tree: the rows flow from the lowest steps upwards. */
export function PlanTree({ steps }: { steps: readonly PlanStep[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="scroll plan" aria-label="Plan" tabIndex={0}>
      <Steps steps={steps} />
    </section>
  );
}

function Steps({ steps }: { steps: readonly PlanStep[] }) {
  return (
    <ul>
      {steps.map(({ name, detail, inputs }, at) => (
        <li key={at}>
          <div class="plan-step">
            <strong>{name}</strong>
            {detail !== "" && <span>{detail}</span>}
          </div>
          {inputs.length > 0 && <Steps steps={inputs} />}
        </li>
      ))}
    </ul>
  );
}

/** A step of a query's plan. */
interface PlanStep {
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
