import { useState } from "preact/hooks";
import {
  type AccessOperation,
  AccessService,
  type ApiKey,
  type TryAccessResponse,
} from "../../gen/lance/gateway/v1/access_pb.ts";
import type { Connection } from "../session/connection.ts";
import { ActionForm } from "../shell/dialog.tsx";
import { namesIn } from "./create-key.tsx";

interface TryAccessProps {
  readonly connection: Connection;
  readonly keys: readonly ApiKey[];
  readonly roles: readonly string[];
  readonly operations: readonly AccessOperation[];
}

/** Proofs of callers who have no key. */
const PROOFS = ["oidc", "kubernetes", "mtls", "api-key"] as const;

/** A question whether a caller may do something, and its answer. Nothing is done. */
export function TryAccess({ connection, keys, roles, operations }: TryAccessProps) {
  const [key, setKey] = useState(keys[0]?.id ?? "");
  const [proof, setProof] = useState<string>(PROOFS[0]);
  const [name, setName] = useState("");
  const [role, setRole] = useState("none");
  const [groups, setGroups] = useState("");
  const [operation, setOperation] = useState("QueryTable");
  const [object, setObject] = useState("");
  const [answer, setAnswer] = useState<TryAccessResponse>();
  const change =
    (set: (text: string) => void) =>
    ({ currentTarget: { value } }: { readonly currentTarget: HTMLInputElement | HTMLSelectElement }) => {
      setAnswer(undefined);
      set(value);
    };
  const run = async () => {
    const caller =
      key === "" ? { principal: `${proof}:${name.trim()}`, role, groups: namesIn(groups) } : { key };
    const path = object.split("/").filter((part) => part !== "");
    setAnswer(await connection.unary(AccessService.method.tryAccess, { ...caller, operation, object: path }));
  };
  return (
    <div class="try-access">
      <ActionForm action="Try" isReady={key !== "" || name.trim() !== ""} run={run}>
        <div class="fields">
          <label>
            Caller
            <select value={key} onChange={change(setKey)}>
              {keys.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name} ({id})
                </option>
              ))}
              <option value="">another…</option>
            </select>
          </label>
          {key === "" && (
            <>
              <label>
                Proof
                <select value={proof} onChange={change(setProof)}>
                  {PROOFS.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </select>
              </label>
              <label>
                Name of the caller
                <input autocomplete="off" spellcheck={false} value={name} onInput={change(setName)} />
              </label>
              <label>
                Role of the caller
                <select value={role} onChange={change(setRole)}>
                  {roles.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </select>
              </label>
              <label>
                Groups of the caller
                <input autocomplete="off" spellcheck={false} value={groups} onInput={change(setGroups)} />
              </label>
            </>
          )}
          <label>
            Operation
            <select value={operation} onChange={change(setOperation)}>
              {operations.map(({ name, action }) => (
                <option key={name} value={name}>
                  {name} ({action})
                </option>
              ))}
            </select>
          </label>
          <label>
            Object, such as team/people
            <input
              autocomplete="off"
              spellcheck={false}
              placeholder="the database"
              value={object}
              onInput={change(setObject)}
            />
          </label>
        </div>
      </ActionForm>
      <p role="status">
        {answer && (
          <>
            <strong>{answer.allowed ? "Yes" : "No"}</strong>: {answer.reason}.
          </>
        )}
      </p>
    </div>
  );
}
