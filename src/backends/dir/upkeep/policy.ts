import { LanceError } from "../../../namespace/errors.ts";
import { parseAge } from "../../../runtime/clocks.ts";

/** When and how tables are looked after. */
export interface UpkeepPolicy {
  readonly enabled: boolean;
  /** Number of small fragments from which on they are joined even while rows arrive. */
  readonly fragments: number;
  /** Number of rows outside an index from which on it is updated even while rows arrive. */
  readonly unindexedRows: number;
  /** Share of deleted rows, in percent, from which on they are removed from the files. */
  readonly deletedPercent: number;
  /** Age from which on versions are pruned, in milliseconds. */
  readonly retentionMs: number;
  /**
   * Which versions are kept until the retention ends: `thinned`, of the older ones a single version of each hour; `all`,
   * every version.
   */
  readonly history: History;
  /** Number of versions beyond which older ones are pruned before the retention ends; undefined for no bound. */
  readonly maxVersions: number | undefined;
}

/** A value of {@link UpkeepPolicy.history}. */
export type History = "thinned" | "all";

/** Number of newest versions that a thinned history keeps, and the period of which it keeps an older one. */
export const THINNED = { keep: 1_000, keepEachMs: 60 * 60 * 1000 } as const;

/** The policy of tables without properties, in a directory without options. */
export const DEFAULT_POLICY: UpkeepPolicy = {
  enabled: true,
  fragments: 16,
  unindexedRows: 1_000,
  deletedPercent: 10,
  retentionMs: 7 * 24 * 60 * 60 * 1000,
  history: "thinned",
  maxVersions: undefined,
};

/** Prefix of the properties of a table that override the policy. */
const PREFIX = "lance-gateway.upkeep";

interface PropertySpec {
  /** Returns the part of the policy; undefined if the text is invalid. */
  readonly read: (text: string) => Partial<UpkeepPolicy> | undefined;
  readonly expected: string;
}

/** The properties by their names after the prefix. */
const PROPERTIES: Readonly<Record<string, PropertySpec>> = {
  "": {
    read: (text) => (text === "on" || text === "off" ? { enabled: text === "on" } : undefined),
    expected: "on or off",
  },
  ".fragments": integer(2, 1_000_000, (fragments) => ({ fragments })),
  ".unindexed-rows": integer(1, 1_000_000_000, (unindexedRows) => ({ unindexedRows })),
  ".deleted-percent": integer(1, 100, (deletedPercent) => ({ deletedPercent })),
  ".retention": {
    read(text) {
      const retentionMs = parseAge(text);
      return retentionMs === undefined ? undefined : { retentionMs };
    },
    expected: "an age such as 90m, 12h or 7d",
  },
  ".history": {
    read: (text) => (text === "thinned" || text === "all" ? { history: text } : undefined),
    expected: "thinned or all",
  },
  ".max-versions": integer(1, 1_000_000, (maxVersions) => ({ maxVersions })),
};

function integer(min: number, max: number, part: (value: number) => Partial<UpkeepPolicy>): PropertySpec {
  return {
    read(text) {
      const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? part(value) : undefined;
    },
    expected: `an integer from ${min} to ${max}`,
  };
}

/**
 * Returns the policy of a table.
 *
 * @param refuse gets a description of each property that is invalid and ignored; other writers set properties unchecked
 */
export function policyOf(
  base: UpkeepPolicy,
  properties: Readonly<Record<string, string>>,
  refuse: (reason: string) => void = () => {},
): UpkeepPolicy {
  let policy = base;
  for (const [name, text] of Object.entries(properties)) {
    if (!name.startsWith(PREFIX)) continue;
    const spec = PROPERTIES[name.slice(PREFIX.length)];
    const part = spec?.read(text);
    if (part !== undefined) policy = { ...policy, ...part };
    else refuse(spec === undefined ? `${name} is unknown` : `${name} must be ${spec.expected}`);
  }
  return policy;
}

/** @throws LanceError InvalidInput for an unknown property of upkeep, and for an invalid value */
export function checkUpkeepProperties(properties: Readonly<Record<string, string>>): void {
  policyOf(DEFAULT_POLICY, properties, (reason) => {
    throw new LanceError("InvalidInput", `the property ${reason}`);
  });
}
