import { useState } from "preact/hooks";
import { isUnauthenticated } from "../../client/errors.ts";
import { ActionForm } from "../shell/action-form.tsx";
import { useCall } from "../shell/hooks.ts";
import { connectGateway } from "./connection.ts";
import { type Session, storeSession } from "./credential.ts";
import type { Issuer } from "./issuer.ts";

interface SignInProps {
  readonly session: Session;
  /** What the gateway asks for. */
  readonly reason: string;
  /** Why a sign-in at an issuer failed. Default: it did not. */
  readonly failure?: string | undefined;
  onDone(session: Session): void;
  onIssuer(issuer: Issuer): void;
}

/** The ways to sign in: at the issuers that the gateway names, and with a credential. */
export function SignIn({ session, reason, failure, onDone, onIssuer }: SignInProps) {
  const issuers = useCall(readIssuers, []);
  const isFormOnly = issuers.value?.length === 0 || issuers.error !== undefined;
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      {(isFormOnly || session.credential) && <p class="muted">{reason}</p>}
      {failure !== undefined && (
        <p class="note note-error" role="alert">
          {failure}
        </p>
      )}
      {issuers.value?.map((issuer) => (
        <button key={issuer.issuer} type="button" class="primary" onClick={() => onIssuer(issuer)}>
          Sign in at {new URL(issuer.issuer).host}
        </button>
      ))}
      {issuers.value !== undefined && !isFormOnly && (
        <details>
          <summary>With a key or a token</summary>
          <CredentialForm session={session} onDone={onDone} />
        </details>
      )}
      {isFormOnly && <CredentialForm session={session} onDone={onDone} />}
    </main>
  );
}

/** Asks the gateway at which issuers the console signs in. */
async function readIssuers(signal: AbortSignal): Promise<readonly Issuer[]> {
  const response = await fetch("sign-in.json", { signal });
  const { issuers } = (await response.json()) as { readonly issuers: readonly Issuer[] };
  return issuers;
}

/** The form for a credential, which stays in memory, or in this tab if its user says so. */
function CredentialForm({ session, onDone }: Pick<SignInProps, "session" | "onDone">) {
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
