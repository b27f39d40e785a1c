import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
} from "../../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { RegisterTableMode } from "../../../src/gen/lance/namespace/v1/table_pb.ts";
import { people, personStream } from "../../support/arrow.ts";
import type { LanceClient } from "../../support/client.ts";
import type { Random } from "../../support/random.ts";
import { type Domain, type Known, locationOf, namesOf, type State } from "./state.ts";

/** A change of a client's objects. */
export interface Action {
  readonly what: string;
  /** Makes the call; it is acknowledged when this resolves. */
  call(client: LanceClient): Promise<unknown>;
  /** The state after the acknowledgement. */
  readonly after: State;
  /**
   * Another state that a cut-off call may leave, beside those before and after: creating a root table takes its name
   * first, so a crash may leave it declared.
   */
  readonly between?: State;
}

/** The input of an action. */
export interface Circumstances {
  readonly domain: Domain;
  readonly state: State;
  readonly random: Random;
  /** A number that is unique among this client's actions. */
  readonly serial: number;
}

type Plan = (circumstances: Circumstances) => Action | undefined;

/** Draws the next action of a client; it must succeed. */
export function drawAction(circumstances: Circumstances): Action {
  for (;;) {
    const action = circumstances.random.pick(PLANS)(circumstances);
    if (action !== undefined) return action;
  }
}

const propertiesOf = (serial: number) => ({ serial: String(serial) });

function extended(state: State, ...entries: readonly (readonly [string, Known])[]): State {
  return new Map([...state, ...entries]);
}
function without(state: State, isGone: (id: string) => boolean): State {
  return new Map([...state].filter(([id]) => !isGone(id)));
}

/** Returns a free name in the root or in one of the client's namespaces. */
function freeName({ domain, state, random, serial }: Circumstances, inRoot = true): string {
  const namespaces = [...state].filter(([, { kind }]) => kind === "namespace").map(([id]) => id);
  const parent = random.pick([...namespaces, ...(inRoot || namespaces.length === 0 ? [""] : [])]);
  return parent === "" ? `${domain.name}-t${serial}` : `${parent}$t${serial}`;
}

/** Returns a random table of the client. */
function anyTable(
  { state, random }: Circumstances,
  fits: (known: Known & { kind: "table" }, id: string) => boolean = () => true,
) {
  const found = [...state].flatMap(([id, known]) =>
    known.kind === "table" && fits(known, id) ? [{ id, known }] : [],
  );
  return found.length === 0 ? undefined : random.pick(found);
}

const declare: Plan = (circumstances) => {
  const { state, serial } = circumstances;
  const id = freeName(circumstances);
  const properties = propertiesOf(serial);
  return {
    what: `declare ${id}`,
    call: (client) => client.declareTable({ id: namesOf(id), properties }),
    after: extended(state, [id, { kind: "table", properties, rows: undefined }]),
  };
};

const createTable: Plan = (circumstances) => {
  const { state, serial, random } = circumstances;
  const id = freeName(circumstances);
  const properties = propertiesOf(serial);
  const rows = 1 + random.below(50);
  return {
    what: `create ${id} of ${rows} rows`,
    call: (client) => client.createTable({ id: namesOf(id), properties }, personStream(people(rows))),
    after: extended(state, [id, { kind: "table", properties, rows }]),
    ...(namesOf(id).length === 1 && {
      between: extended(state, [id, { kind: "table", properties, rows: undefined }]),
    }),
  };
};

const fillDeclared: Plan = (circumstances) => {
  const table = anyTable(circumstances, ({ rows }) => rows === undefined);
  if (table === undefined) return undefined;
  const { state, random } = circumstances;
  const rows = 1 + random.below(50);
  return {
    what: `create the declared ${table.id} of ${rows} rows`,
    call: (client) => client.createTable({ id: namesOf(table.id) }, personStream(people(rows))),
    after: extended(state, [table.id, { ...table.known, rows }]),
  };
};

const drop: Plan = (circumstances) => {
  const table = anyTable(circumstances);
  return (
    table && {
      what: `drop ${table.id}`,
      call: (client) => client.dropTable({ id: namesOf(table.id) }),
      after: without(circumstances.state, (id) => id === table.id),
    }
  );
};

const rename: Plan = (circumstances) => {
  const table = anyTable(circumstances);
  if (table === undefined) return undefined;
  const { state } = circumstances;
  // A table of a namespace cannot move to the root.
  const target = freeName(circumstances, false);
  const names = namesOf(target);
  if (names.length === 1 && namesOf(table.id).length > 1) return undefined;
  return {
    what: `rename ${table.id} to ${target}`,
    call: (client) =>
      client.renameTable({
        id: namesOf(table.id),
        newNamespaceId: names.slice(0, -1),
        newTableName: names.at(-1) as string,
      }),
    after: extended(
      without(state, (id) => id === table.id),
      [target, table.known],
    ),
  };
};

const setProperties: Plan = (circumstances) => {
  const table = anyTable(circumstances, ({ rows }) => rows !== undefined);
  if (table === undefined) return undefined;
  const properties = propertiesOf(circumstances.serial);
  return {
    what: `change the properties of ${table.id}`,
    async call(client) {
      const id = namesOf(table.id);
      const location = await locationOf(client, id);
      await client.registerTable({ id, location, mode: RegisterTableMode.OVERWRITE, properties });
    },
    after: extended(circumstances.state, [table.id, { ...table.known, properties }]),
  };
};

/** The plan has two acknowledged steps; a crash between them leaves a table outside of the catalog. */
const moveByRegistration: Plan = (circumstances) => {
  const table = anyTable(circumstances, ({ rows }) => rows !== undefined);
  if (table === undefined) return undefined;
  const { state, serial } = circumstances;
  const target = freeName(circumstances);
  const properties = propertiesOf(serial);
  const gone = without(state, (id) => id === table.id);
  return {
    what: `deregister ${table.id} and register it as ${target}`,
    async call(client) {
      const location = await locationOf(client, namesOf(table.id));
      await client.deregisterTable({ id: namesOf(table.id) });
      await client.registerTable({ id: namesOf(target), location, properties });
    },
    after: extended(gone, [target, { ...table.known, properties }]),
    between: gone,
  };
};

const createNamespace: Plan = ({ domain, state, random, serial }) => {
  const parents = [...state].filter(([, { kind }]) => kind === "namespace").map(([id]) => id);
  const parent = random.pick([...parents, ""]);
  const id = parent === "" ? `${domain.name}-n${serial}` : `${parent}$n${serial}`;
  if (namesOf(id).length > 3) return undefined;
  const properties = propertiesOf(serial);
  return {
    what: `create namespace ${id}`,
    call: (client) => client.createNamespace({ id: namesOf(id), properties }),
    after: extended(state, [id, { kind: "namespace", properties }]),
  };
};

function anyNamespace({ state, random }: Circumstances): string | undefined {
  const found = [...state].filter(([, { kind }]) => kind === "namespace").map(([id]) => id);
  return found.length < 2 ? undefined : random.pick(found);
}

const dropNamespace: Plan = (circumstances) => {
  const namespace = anyNamespace(circumstances);
  if (namespace === undefined) return undefined;
  const behavior = DropNamespaceBehavior.CASCADE;
  return {
    what: `drop namespace ${namespace} with all that is in it`,
    call: (client) => client.dropNamespace({ id: namesOf(namespace), behavior }),
    after: without(circumstances.state, (id) => id === namespace || id.startsWith(`${namespace}$`)),
  };
};

const replaceNamespace: Plan = (circumstances) => {
  const namespace = anyNamespace(circumstances);
  if (namespace === undefined) return undefined;
  const properties = propertiesOf(circumstances.serial);
  const mode = CreateNamespaceMode.OVERWRITE;
  const below = without(circumstances.state, (id) => id.startsWith(`${namespace}$`));
  return {
    what: `replace namespace ${namespace}`,
    call: (client) => client.createNamespace({ id: namesOf(namespace), mode, properties }),
    after: extended(below, [namespace, { kind: "namespace", properties }]),
  };
};

const batch: Plan = (circumstances) => {
  const table = anyTable(circumstances);
  if (table === undefined) return undefined;
  const { state, serial } = circumstances;
  const properties = propertiesOf(serial);
  const targets = ["a", "b"].map((suffix) => `${freeName(circumstances)}${suffix}`);
  return {
    what: `batch: declare ${targets.join(" and ")}, deregister ${table.id}`,
    call: (client) =>
      client.batchCommitTables({
        operations: [
          ...targets.map((id) => ({
            operation: { case: "declareTable" as const, value: { id: namesOf(id), properties } },
          })),
          { operation: { case: "deregisterTable" as const, value: { id: namesOf(table.id) } } },
        ],
      }),
    after: extended(
      without(state, (id) => id === table.id),
      ...targets.map((id) => [id, { kind: "table", properties, rows: undefined }] as const),
    ),
  };
};

/** The plans to draw from; repeated plans are drawn more often. */
const PLANS: readonly Plan[] = [
  ...[declare, createTable, createTable, fillDeclared, drop, rename, rename, setProperties],
  ...[moveByRegistration, createNamespace, dropNamespace, replaceNamespace, batch],
];
