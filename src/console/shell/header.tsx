import { useState } from "preact/hooks";
import type { Session } from "../session/credential.ts";
import { readSignInFacts } from "../session/sign-in-facts.ts";
import { ActionForm } from "./action-form.tsx";
import { Dialog } from "./dialog.tsx";
import { useCall } from "./hooks.ts";
import { hrefOf, type Route } from "./route.ts";

interface HeaderProps {
  readonly session: Session;
  readonly route: Route;
  readonly isTreeOpen: boolean;
  /** Opens or closes the tree, which narrow screens hide. */
  onTree(): void;
  onSession(session: Session): void;
}

/** The bar above every page. */
export function Header({ session, route, isTreeOpen, onTree, onSession }: HeaderProps) {
  const [isChoosing, setChoosing] = useState(false);
  const isActivity = route.page === "activity";
  const facts = useCall(readSignInFacts, []);
  const hasDatabases = session.database !== undefined || facts.value?.hasDatabases === true;
  return (
    <header class="bar">
      <button type="button" class="quiet tree-button" aria-expanded={isTreeOpen} onClick={onTree}>
        Catalog
      </button>
      <a class="brand" href={hrefOf({ page: "namespace", id: [] })}>
        Lance Gateway
      </a>
      <nav aria-label="Pages">
        <a href={hrefOf({ page: "namespace", id: [] })} aria-current={isActivity ? undefined : "page"}>
          Tables
        </a>
        <a href={hrefOf({ page: "activity" })} aria-current={isActivity ? "page" : undefined}>
          Activity
        </a>
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
