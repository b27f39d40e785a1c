import { useState } from "preact/hooks";
import type { Session } from "../session/credential.ts";
import { readSignInFacts } from "../session/issuer.ts";
import { ActionForm, Dialog } from "./dialog.tsx";
import { useCall } from "./hooks.ts";
import { hrefOf, type Route } from "./route.ts";

const TABLES: Route = { page: "namespace", id: [] };

/** Whether a page is a part of another one. */
function isIn({ page }: Route, { page: of }: Route): boolean {
  return page === of || (page === "table" && of === "namespace");
}

interface HeaderProps {
  readonly session: Session;
  readonly route: Route;
  readonly isTreeOpen: boolean;
  /** Whether the caller may see keys, roles and policies. */
  readonly hasAccess: boolean;
  /** Opens or closes the tree, which narrow screens hide. */
  onTree(): void;
  onSession(session: Session): void;
}

/** The bar above every page. */
export function Header({ session, route, isTreeOpen, hasAccess, onTree, onSession }: HeaderProps) {
  const [isChoosing, setChoosing] = useState(false);
  const pages: readonly (readonly [title: string, to: Route])[] = [
    ["Tables", TABLES],
    ["SQL", { page: "sql" }],
    ["Activity", { page: "activity" }],
    ...(hasAccess ? ([["Access", { page: "access" }]] as const) : []),
  ];
  const facts = useCall(readSignInFacts, []);
  const hasDatabases = session.database !== undefined || facts.value?.hasDatabases === true;
  return (
    <header class="bar">
      <button type="button" class="quiet tree-button" aria-expanded={isTreeOpen} onClick={onTree}>
        Catalog
      </button>
      <a class="brand" href={hrefOf(TABLES)}>
        Lance Gateway
      </a>
      <nav aria-label="Pages">
        {pages.map(([title, to]) => (
          <a key={title} href={hrefOf(to)} aria-current={isIn(route, to) ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <div class="bar-end">
        {hasDatabases && (
          <button type="button" class="quiet" onClick={() => setChoosing(true)}>
            {session.database ? `Database ${session.database}` : "Database"}
          </button>
        )}
        {session.credential && (
          <button type="button" class="quiet" onClick={() => onSession({ database: session.database })}>
            Sign out
          </button>
        )}
      </div>
      {isChoosing && (
        <Dialog title="Database" onClose={() => setChoosing(false)}>
          <ChooseDatabase
            database={session.database ?? ""}
            onDone={(database) => {
              setChoosing(false);
              onSession({ ...session, database: database || undefined });
            }}
          />
        </Dialog>
      )}
    </header>
  );
}

interface ChooseDatabaseProps {
  readonly database: string;
  onDone(database: string): void;
}

function ChooseDatabase({ database, onDone }: ChooseDatabaseProps) {
  const [name, setName] = useState(database);
  return (
    <ActionForm action="Use it" isReady run={async () => onDone(name.trim())}>
      <p>A gateway with several databases serves each by its name. Empty stands for the default one.</p>
      <label>
        Name
        <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
    </ActionForm>
  );
}

/** Links to the namespaces around an object. */
export function Crumbs({ id }: { id: readonly string[] }) {
  return (
    <nav class="crumbs" aria-label="Where it is">
      <a href={hrefOf({ page: "namespace", id: [] })}>Root</a>
      {id.slice(0, -1).map((name, at) => (
        <a key={name} href={hrefOf({ page: "namespace", id: id.slice(0, at + 1) })}>
          {name}
        </a>
      ))}
    </nav>
  );
}
