import { describe } from "vitest";
import { changeTests } from "./change.ts";
import { columnTests } from "./columns.ts";
import { concurrencyTests, rowConcurrencyTests } from "./concurrency.ts";
import { dataTests } from "./data.ts";
import { describeTableTests } from "./describe-table.ts";
import { versionTests } from "./history.ts";
import { identifierTests } from "./identifiers.ts";
import { indexTests } from "./indices.ts";
import { backfillTests, viewTests } from "./jobs.ts";
import { managedVersionTests } from "./managed-versions.ts";
import { mergeTests } from "./merge.ts";
import { metadataTests } from "./metadata.ts";
import { namespaceTests } from "./namespaces.ts";
import { queryTests } from "./query.ts";
import { refTests } from "./refs.ts";
import { registrationTests } from "./registration.ts";
import { renameTests } from "./rename.ts";
import { searchTests } from "./search.ts";
import { tableTests } from "./tables.ts";
import { textSearchTests } from "./text-search.ts";
import { transactionTests } from "./transactions.ts";
import { unfitFieldTests } from "./unfit-fields.ts";
import { unsupportedTests } from "./unsupported.ts";
import { ALL_CAPABILITIES, type Capabilities, createWorld, type Fixture, type World } from "./world.ts";

/** Options of {@link contractSuite}. */
export interface ContractOptions {
  /** Opens a fresh, empty catalog through the backend. */
  open(): Promise<Fixture>;
  /** The backend's capabilities. Default: everything that the contract requires so far. */
  readonly capabilities?: Partial<Capabilities>;
}

/** Runs the contract for the operations of a backend; every backend's test is a call of this. */
export function contractSuite(name: string, { open, capabilities }: ContractOptions): void {
  describe(`the contract, on ${name}`, () => {
    const world = createWorld(open, { ...ALL_CAPABILITIES, ...capabilities });
    namespaceTests(world);
    tableTests(world);
    registrationTests(world);
    describeTableTests(world);
    rowTests(world);
    identifierTests(world);
    concurrencyTests(world);
    managedVersionTests(world);
    renameTests(world);
    viewTests(world);
    unsupportedTests(world);
  });
}

/**
 * Runs the part of the contract that is about rows, for a gateway that serves the rows of a foreign catalog. Names are
 * tested by the suite of catalogs.
 */
export function rowSuite(name: string, { open, capabilities }: ContractOptions): void {
  describe(`the contract of rows, on ${name}`, () => {
    const world = createWorld(open, { ...ALL_CAPABILITIES, ...capabilities });
    rowTests(world);
    rowConcurrencyTests(world);
  });
}

function rowTests(world: World): void {
  dataTests(world);
  queryTests(world);
  searchTests(world);
  textSearchTests(world);
  mergeTests(world);
  changeTests(world);
  unfitFieldTests(world);
  versionTests(world);
  refTests(world);
  transactionTests(world);
  columnTests(world);
  metadataTests(world);
  indexTests(world);
  backfillTests(world);
}
