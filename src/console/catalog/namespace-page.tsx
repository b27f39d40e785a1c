import { useState } from "preact/hooks";
import type { Connection } from "../session/connection.ts";
import {
  catalogOf,
  inabilitiesOf,
  permissionsOf,
  principalOf,
  storageOf,
  supports,
  TELL_PERMISSIONS,
  versionOf,
} from "../session/told-facts.ts";
import { ActionForm, Dialog, DropForm } from "../shell/dialog.tsx";
import { Crumbs } from "../shell/header.tsx";
import { useCall } from "../shell/hooks.ts";
import { ErrorNote, late, Waiting } from "../shell/notes.tsx";
import { CreateNamespace, CreateTable } from "./create-objects.tsx";
import { Folders, TableList } from "./table-list.tsx";

const LateImportForm = late(async () => (await import("../import/import-form.tsx")).ImportForm);

interface NamespacePageProps {
  readonly connection: Connection;
  readonly id: readonly string[];
  /** Called when something appeared in the namespace: the names that lead to it, and whether it is a table. */
  onCreated(id: readonly string[], isTable: boolean): void;
  onDropped(id: readonly string[]): void;
}

type Action = "namespace" | "table" | "drop";

/** Name of the table with sample data. */
const SAMPLE = "sample_products";

/** A namespace: its properties, and what can be created in it. */
export function NamespacePage({ connection, id, onCreated, onDropped }: NamespacePageProps) {
  const [action, setAction] = useState<Action>();
  const { namespace } = connection;
  const { value, error, reload } = useCall(
    (signal) => namespace.describeNamespace({ id }, { ...TELL_PERMISSIONS, signal }),
    [namespace, id.join("/")],
  );
  const name = id.at(-1) ?? "Catalog";
  const permissions = value && permissionsOf(value);
  const storage = value && storageOf(value);
  const isRoot = id.length === 0;
  const creates = permissions?.has("write") && value !== undefined && supports(value, "createTable");
  // Nothing is known of the tables before they are listed.
  const [tables, setTables] = useState<readonly (readonly string[])[]>();
  const close = () => setAction(undefined);
  return (
    <>
      <header class="page-head">
        {id.length > 0 && <Crumbs id={id} />}
        <h1 title={name}>{name}</h1>
        <div class="actions">
          {creates && (
            <button type="button" onClick={() => setAction("table")}>
              New table
            </button>
          )}
          {permissions?.has("manage") && (
            <button type="button" onClick={() => setAction("namespace")}>
              New namespace
            </button>
          )}
          {permissions?.has("manage") && id.length > 0 && (
            <button type="button" class="danger" onClick={() => setAction("drop")}>
              Drop
            </button>
          )}
        </div>
      </header>
      {error && <ErrorNote error={error} retry={reload} />}
      {value === undefined && error === undefined && <Waiting what="Reading the namespace…" />}
      {value !== undefined && Object.keys(value.properties).length > 0 && (
        <dl class="texts">
          {Object.entries(value.properties).map(([key, text]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {value !== undefined && <CatalogNote told={value} />}
      {!isRoot && storage !== undefined && (
        <dl class="texts">
          <div>
            <dt>Storage</dt>
            <dd>{storage}</dd>
          </div>
        </dl>
      )}
      {isRoot && value !== undefined && (
        <HomeFacts
          connection={connection}
          principal={principalOf(value)}
          version={versionOf(value)}
          storage={storage}
        />
      )}
      {value !== undefined && <Folders connection={connection} id={id} />}
      {permissions?.has("list") && <TableList connection={connection} id={id} onFound={setTables} />}
      {creates && tables !== undefined && !tables.some((table) => table.at(-1) === SAMPLE) && (
        <Sample connection={connection} parent={id} onDone={(table) => onCreated(table, true)} />
      )}
      {creates && (
        <section class="panel">
          <h2>Import a file</h2>
          <LateImportForm connection={connection} parent={id} onDone={(table) => onCreated(table, true)} />
        </section>
      )}
      {action === "namespace" && (
        <Dialog title="New namespace" onClose={close}>
          <CreateNamespace
            connection={connection}
            parent={id}
            onDone={(created) => {
              close();
              onCreated(created, false);
            }}
          />
        </Dialog>
      )}
      {action === "table" && (
        <Dialog title="New table" onClose={close}>
          <CreateTable
            connection={connection}
            parent={id}
            onDone={(created) => {
              close();
              onCreated(created, true);
            }}
          />
        </Dialog>
      )}
      {action === "drop" && (
        <Dialog title={`Drop ${name}`} onClose={close}>
          <DropNamespace
            connection={connection}
            id={id}
            onDone={() => {
              close();
              onDropped(id);
            }}
          />
        </Dialog>
      )}
    </>
  );
}

interface CatalogNoteProps {
  readonly told: Parameters<typeof catalogOf>[0];
}

/** Says whose catalog a database is and what cannot be done there; nothing of the gateway's own. */
function CatalogNote({ told }: CatalogNoteProps) {
  const catalog = catalogOf(told);
  if (catalog === undefined) return null;
  const inabilities = inabilitiesOf(told);
  return (
    <p class="note">
      The catalog is {catalog}.{" "}
      {inabilities.length > 0 && `Through it, the gateway cannot: ${inabilities.join("; ")}.`}
    </p>
  );
}

interface SampleProps {
  readonly connection: Connection;
  readonly parent: readonly string[];
  onDone(id: readonly string[]): void;
}

/** The button that creates a table to try things with. */
function Sample({ connection, parent, onDone }: SampleProps) {
  const create = async () => {
    const { createSample } = await import("./sample-data.ts");
    const id = [...parent, SAMPLE];
    await createSample(connection, id);
    onDone(id);
  };
  return (
    <section class="panel">
      <h2>Try it out</h2>
      <ActionForm action="Create the sample table" isReady run={create}>
        <p>
          A table {SAMPLE} of 300 made-up products with prices, times, lists and vectors. Drop it whenever you
          like.
        </p>
      </ActionForm>
    </section>
  );
}

interface DropNamespaceProps extends Pick<NamespacePageProps, "connection" | "id"> {
  onDone(): void;
}

function DropNamespace({ connection, id, onDone }: DropNamespaceProps) {
  const name = id.at(-1) ?? "";
  const drop = async () => {
    await connection.namespace.dropNamespace({ id });
    onDone();
  };
  return (
    <DropForm name={name} drop={drop}>
      Only an empty namespace can be dropped.
    </DropForm>
  );
}

interface HomeFactsProps {
  readonly connection: Connection;
  /** Who the caller is. Default: callers prove nothing. */
  readonly principal: string | undefined;
  /** Version of the gateway. Default: it does not tell. */
  readonly version: string | undefined;
  /** Where the data is. Default: the caller may not list the root, or the backend does not tell. */
  readonly storage: string | undefined;
}

/** What one wants to know of a gateway first: whether it is well, its version, its storage, and who is signed in. */
function HomeFacts({ connection, principal, version, storage }: HomeFactsProps) {
  const health = useCall(
    async (signal) => {
      const { ok } = await connection.fetch("/readyz", { signal });
      return ok ? "ready" : "not ready";
    },
    [connection],
  );
  const facts: readonly (readonly [name: string, value: string | undefined])[] = [
    ["Gateway", health.error === undefined ? health.value : "does not answer"],
    ["Version", version],
    ["Storage", storage],
    ["Signed in", principal ?? "nobody, as the gateway asks for nothing"],
  ];
  return (
    <dl class="figures home-facts">
      {facts.flatMap(([name, value]) =>
        value === undefined ? (
          []
        ) : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
