import type { PlanStep } from "./plan.ts";

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
