import { useState } from "preact/hooks";
import { isUnauthenticated } from "../../client/errors.ts";
import { ActionForm } from "../shell/action-form.tsx";
import { connectGateway } from "./connection.ts";
import { type Session, storeSession } from "./credential.ts";

interface SignInProps {
  readonly session: Session;
  /** What the gateway asks for. */
  readonly reason: string;
  onDone(session: Session): void;
}

/** The form for a credential, which stays in memory, or in this tab if its user says so. */
export function SignIn({ session, reason, onDone }: SignInProps) {
  const [secret, setSecret] = useState("");
  const [kind, setKind] = useState<"api-key" | "token">("api-key");
  const [isKept, setKept] = useState(false);
  const signIn = async () => {
    const next: Session = { ...session, credential: { kind, secret: secret.trim() } };
    await tryOut(next);
    if (isKept) storeSession(sessionStorage, next);
    onDone(next);
  };
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      <p class="muted">{reason}</p>
      <ActionForm action="Sign in" isReady={secret.trim() !== ""} run={signIn}>
        <label>
          Credential
          <select
            value={kind}
            onChange={({ currentTarget }) => setKind(currentTarget.value as "api-key" | "token")}
          >
            <option value="api-key">API key</option>
            <option value="token">Token</option>
          </select>
        </label>
        <label>
          {kind === "api-key" ? "API key" : "Token"}
          <input
            type="password"
            autocomplete="off"
            value={secret}
            onInput={({ currentTarget }) => setSecret(currentTarget.value)}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={isKept}
            onChange={({ currentTarget }) => setKept(currentTarget.checked)}
          />
          Keep it until this tab closes
        </label>
      </ActionForm>
    </main>
  );
}

/** Makes a call that every caller who is known may make, or is refused for another reason. */
async function tryOut(session: Session): Promise<void> {
  try {
    await connectGateway(session).namespace.describeNamespace({ id: [] });
  } catch (thrown) {
    if (isUnauthenticated(thrown)) throw thrown;
  }
}
