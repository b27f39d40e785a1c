import { useEffect, useMemo, useState } from "preact/hooks";
import { isUnauthenticated } from "../client/errors.ts";
import { ActivityPage } from "./activity/activity-page.tsx";
import { NamespacePage } from "./catalog/namespace-page.tsx";
import { Tree } from "./catalog/tree.tsx";
import { createTreeModel, type Lister, type TreeModel } from "./catalog/tree-model.ts";
import { beginSignIn, signOutAddress } from "./session/code-flow.ts";
import { type Connection, connectGateway } from "./session/connection.ts";
import {
  noteAccepted,
  type Session,
  storedSession,
  storeSession,
  takeExpired,
} from "./session/credential.ts";
import type { Issuer } from "./session/issuer.ts";
import { SignIn } from "./session/sign-in.tsx";
import { type Start, surroundings } from "./session/start.ts";
import { permissionsOf, principalOf, TELL_PERMISSIONS } from "./session/told-facts.ts";
import { Header } from "./shell/header.tsx";
import { errorOf, useCall, useRoute } from "./shell/hooks.ts";
import { late, Waiting } from "./shell/notes.tsx";
import { hrefOf, type Route } from "./shell/route.ts";
import { TablePage } from "./table/table-page.tsx";

const LateAccessPage = late(async () => (await import("./access/access-page.tsx")).AccessPage);
const LateSqlPage = late(async () => (await import("./sql/sql-page.tsx")).SqlPage);

/** The console. */
export function App({ start }: { readonly start: Start }) {
  const [{ session, failure }, setState] = useState<Start>(start);
  const [isLeaving, setLeaving] = useState(false);
  const leave = async (findTarget: () => Promise<URL | undefined>) => {
    setLeaving(true);
    const next = { session: { database: session.database } };
    try {
      const target = await findTarget();
      if (target !== undefined) return location.assign(target.href);
      setState(next);
    } catch (thrown) {
      setState({ ...next, failure: errorOf(thrown).message });
    }
    setLeaving(false);
  };
  const signInAt = (issuer: Issuer) => leave(() => beginSignIn(issuer, surroundings()));
  const connection = useMemo(
    () =>
      connectGateway(session, () => {
        const issuer = takeExpired(sessionStorage, session);
        if (issuer !== undefined) void signInAt(issuer);
      }),
    [session],
  );
  // Whether the gateway knows the caller matters, and whether the caller owns the gateway.
  const greeting = useCall(
    async (signal) => {
      const options = { signal, ...TELL_PERMISSIONS };
      const answer = await connection.namespace.describeNamespace({ id: [] }, options).catch((thrown) => {
        if (isUnauthenticated(thrown)) throw thrown;
      });
      noteAccepted(sessionStorage, session);
      const hasAccess = answer && principalOf(answer) !== undefined && permissionsOf(answer).has("admin");
      return { connection, hasAccess: hasAccess === true };
    },
    [connection],
  );
  const change = (next: Session) => {
    const isKept = storedSession(sessionStorage).credential !== undefined;
    storeSession(sessionStorage, isKept ? next : { database: next.database });
    const issuer = next.credential === undefined ? session.credential?.issuer : undefined;
    if (issuer === undefined) setState({ session: next });
    else void leave(() => signOutAddress(issuer, surroundings()));
  };
  if (isLeaving) return <Waiting what="Asking the issuer…" />;
  if (greeting.error !== undefined)
    return (
      <SignIn
        session={session}
        reason={greeting.error.message}
        failure={failure}
        onDone={(next) => setState({ session: next })}
        onIssuer={(issuer) => void signInAt(issuer)}
      />
    );
  if (greeting.value?.connection !== connection) return <Waiting what="Connecting…" />;
  return <SignedIn key={JSON.stringify(session)} {...greeting.value} onSession={change} />;
}

interface SignedInProps {
  readonly connection: Connection;
  readonly hasAccess: boolean;
  onSession(session: Session): void;
}

function SignedIn({ connection, hasAccess, onSession }: SignedInProps) {
  const route = useRoute();
  const tree = useTree(connection);
  const [isTreeOpen, setTreeOpen] = useState(false);
  const selected = "id" in route ? route.id : [];
  return (
    <div class={`shell${isTreeOpen ? " has-tree" : ""}`}>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on the page, as screen readers announce it */}
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the content
      </a>
      <Header
        session={connection.session}
        route={route}
        {...{ isTreeOpen, hasAccess }}
        onTree={() => setTreeOpen(!isTreeOpen)}
        onSession={onSession}
      />
      <Sidebar model={tree} selected={selected} onChosen={() => setTreeOpen(false)} />
      <main id="main" tabIndex={-1}>
        <Page route={route} connection={connection} refresh={(id) => tree.refresh(id)} />
      </main>
    </div>
  );
}

/** The address of the page is that of its content, so that the link must not change it. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

interface PageProps {
  readonly route: Route;
  readonly connection: Connection;
  /** Shows in the tree what has changed in a namespace. */
  refresh(id: readonly string[]): void;
}

function Page({ route, connection, refresh }: PageProps) {
  if (route.page === "activity") return <ActivityPage connection={connection} />;
  if (route.page === "access") return <LateAccessPage connection={connection} />;
  if (route.page === "sql") return <LateSqlPage connection={connection} params={route.params ?? {}} />;
  const { id } = route;
  if (route.page === "namespace") {
    return (
      <NamespacePage
        key={id.join("/")}
        connection={connection}
        id={id}
        onCreated={(created, isTable) => {
          refresh(id);
          location.hash = hrefOf(
            isTable ? { page: "table", id: created, view: "rows" } : { page: "namespace", id: created },
          );
        }}
        onDropped={() => {
          refresh(id.slice(0, -1));
          location.hash = hrefOf({ page: "namespace", id: id.slice(0, -1) });
        }}
      />
    );
  }
  const parent = id.slice(0, -1);
  return (
    <TablePage
      key={id.join("/")}
      connection={connection}
      id={id}
      view={route.view}
      params={route.params ?? {}}
      onMoved={(to) => {
        refresh(parent);
        location.hash = hrefOf(
          to === undefined ? { page: "namespace", id: parent } : { page: "table", id: to, view: "rows" },
        );
      }}
    />
  );
}

/** Names that the tree asks for at a time. */
const PAGE_NAMES = 1000;

/** Creates the model of the tree, which is drawn again when it changes, and read again when the window gets the focus. */
function useTree({ namespace }: Connection): TreeModel {
  const [, redraw] = useState(0);
  const model = useMemo(() => {
    const lister: Lister = {
      async namespaces(id, pageToken) {
        const page = await namespace.listNamespaces({ id, pageToken, limit: PAGE_NAMES });
        return { names: page.namespaces, next: page.pageToken || undefined };
      },
      async tables(id, pageToken) {
        const page = await namespace.listTables({ id, pageToken, limit: PAGE_NAMES });
        return { names: page.tables, next: page.pageToken || undefined };
      },
    };
    return createTreeModel(lister, () => redraw((before) => before + 1));
  }, [namespace]);
  useEffect(() => {
    addEventListener("focus", model.refreshOpen);
    return () => removeEventListener("focus", model.refreshOpen);
  }, [model]);
  return model;
}

interface SidebarProps {
  readonly model: TreeModel;
  readonly selected: readonly string[];
  /** Called when an object is chosen. */
  onChosen(): void;
}

/** The tree of the catalog, with the search above it. */
function Sidebar({ model, selected, onChosen }: SidebarProps) {
  const [prefix, setPrefix] = useState("");
  const path = selected.join("/");
  useEffect(() => model.reveal(selected), [model, path]);
  const rows = model.rows();
  return (
    <nav class="sidebar" aria-label="Catalog">
      <label class="search">
        <span class="visually-hidden">Names that begin with</span>
        <input
          type="search"
          placeholder="Names that begin with…"
          value={prefix}
          onInput={({ currentTarget }) => {
            setPrefix(currentTarget.value);
            model.search(currentTarget.value);
          }}
        />
      </label>
      {prefix !== "" && rows.length === 0 && <p class="note note-empty">No name begins with it.</p>}
      <Tree model={model} rows={rows} selected={selected} onChosen={onChosen} />
    </nav>
  );
}
