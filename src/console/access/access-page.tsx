import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { AccessService, type ApiKey } from "../../gen/lance/gateway/v1/access_pb.ts";
import type { Connection } from "../session/connection.ts";
import { ActionForm, Dialog } from "../shell/dialog.tsx";
import { formatTime } from "../shell/format.ts";
import { type Outcome, useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { CreateKey } from "./create-key.tsx";
import { TryAccess } from "./try-access.tsx";

const { listKeys, listRoles, listPolicies, revokeKey } = AccessService.method;

interface AccessPageProps {
  readonly connection: Connection;
}

type Action = { readonly does: "create" } | { readonly does: "revoke"; readonly key: ApiKey };

/** The API keys, roles and policies of the gateway, and what each caller may do. */
export function AccessPage({ connection }: AccessPageProps) {
  const [action, setAction] = useState<Action>();
  const keys = useCall((signal) => connection.unary(listKeys, {}, signal), [connection]);
  const roles = useCall((signal) => connection.unary(listRoles, {}, signal), [connection]);
  const policies = useCall((signal) => connection.unary(listPolicies, {}, signal), [connection]);
  const close = () => setAction(undefined);
  const done = () => {
    close();
    keys.reload();
  };
  const mayChange = keys.value?.readOnlyReason === "";
  return (
    <>
      <header class="page-head">
        <h1>Access</h1>
      </header>
      <div class="section-head">
        <h2>API keys</h2>
        {mayChange && (
          <button type="button" class="primary" onClick={() => setAction({ does: "create" })}>
            Create a key
          </button>
        )}
      </div>
      {keys.error && <KeysError outcome={keys} />}
      {keys.isRunning && keys.value === undefined && <Waiting what="Reading the keys…" />}
      {keys.value?.readOnlyReason && (
        <p class="muted">Keys cannot be changed here: {keys.value.readOnlyReason}.</p>
      )}
      {keys.value && (
        <KeyList
          keys={keys.value.keys}
          onRevoke={mayChange ? (key) => setAction({ does: "revoke", key }) : undefined}
        />
      )}
      <h2>May a caller do it?</h2>
      {roles.error && <ErrorNote error={roles.error} retry={roles.reload} />}
      {roles.value && (keys.value ?? keys.error) !== undefined && (
        <TryAccess
          connection={connection}
          keys={keys.value?.keys ?? []}
          roles={roles.value.roles.map(({ name }) => name)}
          operations={roles.value.operations}
        />
      )}
      <h2>Roles</h2>
      <ul class="cards">
        {roles.value?.roles.map(({ name, actions }) => (
          <li key={name}>
            <strong>{name}</strong>
            <span class="muted">{actions.join(", ") || "nothing"}</span>
          </li>
        ))}
      </ul>
      <h2>Policies</h2>
      {policies.error && <ErrorNote error={policies.error} retry={policies.reload} />}
      {policies.value && <p class="muted">{DECIDED[policies.value.decidedBy] ?? policies.value.decidedBy}</p>}
      {policies.value?.policies.map(({ name, text }) => (
        <details key={name} class="policy">
          <summary>{name}</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
          <pre class="scroll" tabIndex={0}>
            {text}
          </pre>
        </details>
      ))}
      {action?.does === "create" && roles.value && (
        <Dialog title="Create an API key" onClose={done}>
          <CreateKey
            connection={connection}
            roles={roles.value.roles.map(({ name }) => name)}
            onDone={done}
          />
        </Dialog>
      )}
      {action?.does === "revoke" && (
        <Dialog title={`Revoke the key of ${action.key.name}`} onClose={close}>
          <ActionForm
            action={`Revoke ${action.key.id}`}
            isDangerous
            isReady
            run={async () => {
              await connection.unary(revokeKey, { id: action.key.id });
              done();
            }}
          >
            <p>
              The gateway refuses the key within two seconds, and nothing brings it back. Calls in flight go
              on. Other keys of {action.key.name} stay.
            </p>
          </ActionForm>
        </Dialog>
      )}
    </>
  );
}

const DECIDED: Readonly<Record<string, string>> = {
  roles: "There are no policies: roles decide.",
  cedar: "The policies alone decide; a role does nothing by itself.",
  opa: "A server of Open Policy Agent decides, which keeps its policies to itself.",
};

/** A gateway without keys is no failure. */
function KeysError({ outcome: { error, reload } }: { readonly outcome: Outcome<unknown> }) {
  if (error?.kind === "Unsupported") return <EmptyNote>{error.message}.</EmptyNote>;
  return error === undefined ? null : <ErrorNote error={error} retry={reload} />;
}

interface KeyListProps {
  readonly keys: readonly ApiKey[];
  /** Default: keys cannot be revoked here. */
  readonly onRevoke: ((key: ApiKey) => void) | undefined;
}

function KeyList({ keys, onRevoke }: KeyListProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="scroll" aria-label="API keys and their facts" tabIndex={0}>
      <table class="tables keys">
        <thead>
          <tr>
            {["Name", "Role", "Groups", "Scope", "Created", "Expires", "Id"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            {onRevoke && (
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <th scope="row">{key.name}</th>
              <td>{key.role}</td>
              <td>{key.groups.join(", ") || "–"}</td>
              <td>{key.scope.join(", ") || "everything"}</td>
              <td>{key.created && <Minute millis={timestampMs(key.created)} />}</td>
              <td>{key.expires === undefined ? "never" : <Expiry millis={timestampMs(key.expires)} />}</td>
              <td>
                <code>{key.id}</code>
              </td>
              {onRevoke && (
                <td>
                  <button
                    type="button"
                    class="danger"
                    aria-label={`Revoke ${key.id} of ${key.name}`}
                    onClick={() => onRevoke(key)}
                  >
                    Revoke
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Expiry({ millis }: { readonly millis: number }) {
  return millis <= Date.now() ? <strong>expired</strong> : <Minute millis={millis} />;
}

/** Shows a time to the minute, and all of it under the pointer. */
function Minute({ millis }: { readonly millis: number }) {
  const text = formatTime(millis);
  return (
    <time dateTime={new Date(millis).toISOString()} title={text}>
      {text.replace(/:\d\d(?:\.\d+)? UTC$/, " UTC")}
    </time>
  );
}
