import type { Audit } from "./audit.ts";
import type { Summary } from "./book.ts";

/** Those results of a soak that are judged. */
export interface Outcome {
  readonly calls: Pick<Summary, "wrong" | "failed">;
  readonly protocols: Readonly<Record<string, Pick<Summary, "calls">>>;
  readonly audit: Audit;
  /** Endings of gateways other than with code 0, and errors in their logs. */
  readonly troubles: readonly string[];
}

/** A condition that a soak must meet. */
export interface Criterion {
  readonly name: string;
  readonly found: string;
  readonly passed: boolean;
}

/** Judges a soak. */
export function judge({ calls, protocols, audit, troubles }: Outcome): Criterion[] {
  const silent = Object.keys(protocols).filter((protocol) => protocols[protocol]?.calls === 0);
  return [
    none("Failed calls", calls.failed),
    none("Wrong answers", calls.wrong),
    none("Lost rows", audit.lost),
    none("Rows that were deleted, or exist twice", audit.surplus),
    none("Rows without their last change", audit.stale),
    {
      name: "Rows that CountTableRows counts",
      found: `${shown(audit.counted)} of ${shown(audit.expected)}`,
      passed: audit.unknown === 0 && audit.counted === audit.expected,
    },
    { name: "Protocols without calls", found: silent.join(", ") || "0", passed: silent.length === 0 },
    {
      name: "Gateways that ended badly, and errors in their logs",
      found: troubles.length === 0 ? "0" : `${troubles.length}, first: ${troubles[0]}`,
      passed: troubles.length === 0,
    },
  ];
}

function none(name: string, number: number): Criterion {
  return { name, found: shown(number), passed: number === 0 };
}

const shown = (number: number): string => number.toLocaleString("en");
