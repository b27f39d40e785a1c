/** The target of an attack: a gateway over a directory. */
export interface Target {
  readonly port: number;
  /** A table of some 60 MB of incompressible rows. */
  readonly table: string;
}

/** The column of the table with a few words in each row. */
export const WORDS = "w";

/** An attack by one client at the cost of the others. */
export interface Attack {
  /** A short name for the table of figures. */
  readonly title: string;
  /** Whether {@link WORDS} has a full-text index before the attack. Default: it has none */
  readonly searchesWords?: boolean;
  /** Whether a server of node alone is attacked in the same way for comparison. Default: it is not */
  readonly isFlood?: boolean;
  /** Resolves when the attack is in flight; it then lasts until its process ends. */
  launch(target: Target): Promise<void>;
}
