import { useState } from "preact/hooks";
import { AccessService } from "../../gen/lance/gateway/v1/access_pb.ts";
import type { Connection } from "../session/connection.ts";
import { CopyButton } from "../shell/copy-button.tsx";
import { ActionForm } from "../shell/dialog.tsx";

/** Lives of keys that the form offers, in days; 0 is no end. */
const LIVES = [7, 30, 90, 365, 0] as const;

interface CreateKeyProps {
  readonly connection: Connection;
  readonly roles: readonly string[];
  onDone(): void;
}

/** The form that creates a key, and shows its text once. */
export function CreateKey({ connection, roles, onDone }: CreateKeyProps) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("reader");
  const [groups, setGroups] = useState("");
  const [scope, setScope] = useState("");
  const [days, setDays] = useState<number>(90);
  const [secret, setSecret] = useState<string>();
  const run = async () => {
    const lifetimeSeconds = days === 0 ? undefined : BigInt(days * 86_400);
    const request = {
      name: name.trim(),
      role,
      groups: namesIn(groups),
      scope: namesIn(scope),
      lifetimeSeconds,
    };
    const answer = await connection.unary(AccessService.method.createKey, request);
    setSecret(answer.secret);
  };
  if (secret !== undefined)
    return (
      <div class="stack">
        <p>
          This is the key of <strong>{name.trim()}</strong>. It is shown once: the gateway keeps its hash
          alone.
        </p>
        <pre class="secret">{secret}</pre>
        <div class="buttons">
          <CopyButton label="the key" textOf={() => secret} />
          <button type="button" class="primary" onClick={onDone}>
            Done
          </button>
        </div>
      </div>
    );
  return (
    <ActionForm action="Create" isReady={name.trim() !== ""} run={run}>
      <label>
        Name of the caller
        <input autocomplete="off" spellcheck={false} value={name} onInput={textTo(setName)} />
      </label>
      <label>
        Role
        <select value={role} onChange={({ currentTarget }) => setRole(currentTarget.value)}>
          {roles.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        Groups, separated by commas
        <input autocomplete="off" spellcheck={false} value={groups} onInput={textTo(setGroups)} />
      </label>
      <label>
        Restrict it to objects, such as sales$raw
        <input
          autocomplete="off"
          spellcheck={false}
          placeholder="everything"
          value={scope}
          onInput={textTo(setScope)}
        />
      </label>
      <label>
        Expires
        <select value={String(days)} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
          {LIVES.map((each) => (
            <option key={each} value={String(each)}>
              {each === 0 ? "never" : `after ${each} days`}
            </option>
          ))}
        </select>
      </label>
    </ActionForm>
  );
}

function textTo(set: (text: string) => void) {
  return ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => set(currentTarget.value);
}

/** Returns the names in a list with commas. */
export function namesIn(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
