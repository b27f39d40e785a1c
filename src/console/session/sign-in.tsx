import { useEffect, useRef, useState } from "preact/hooks";
import { isUnauthenticated } from "../../client/errors.ts";
import { LanceError } from "../../namespace/errors.ts";
import { ActionForm } from "../shell/dialog.tsx";
import { useCall } from "../shell/hooks.ts";
import { Waiting } from "../shell/notes.tsx";
import { connectGateway } from "./connection.ts";
import { type Session, storeSession } from "./credential.ts";
import { type Issuer, readSignInFacts, type SignInFacts } from "./issuer.ts";

type Method = SignInFacts["methods"][number];

interface SignInProps {
  readonly session: Session;
  /** What the gateway says of the session. */
  readonly reason: string;
  /** Why a sign-in at an issuer failed. Default: it did not. */
  readonly failure?: string | undefined;
  onDone(session: Session): void;
  onIssuer(issuer: Issuer): void;
}

const METHODS: Readonly<Record<Method, string>> = { "api-key": "API key", token: "Token" };

/** The ways to sign in that are on: at the issuers that the gateway names, and with a credential. */
export function SignIn({ session, reason, failure, onDone, onIssuer }: SignInProps) {
  const facts = useCall(readSignInFacts, []);
  const issuers = facts.value?.issuers ?? [];
  // Without an answer, a credential may be right.
  const methods = facts.error === undefined ? facts.value?.methods : (["api-key", "token"] as const);
  const form = methods !== undefined && methods.length > 0 && (
    <CredentialForm session={session} methods={methods} onDone={onDone} />
  );
  return (
    <main class="sign-in">
      <h1>Sign in to Lance Gateway</h1>
      <p class="muted">{location.host}</p>
      {session.credential !== undefined && failure === undefined && (
        <p class="note note-error" role="alert">
          The gateway does not accept what you signed in with: {reason}
        </p>
      )}
      {failure !== undefined && (
        <p class="note note-error" role="alert">
          {failure}
        </p>
      )}
      {methods === undefined && <Waiting what="Asking how to sign in…" />}
      {issuers.map((issuer) => (
        <button key={issuer.issuer} type="button" class="primary" onClick={() => onIssuer(issuer)}>
          Sign in at {new URL(issuer.issuer).host}
        </button>
      ))}
      {issuers.length > 0 && form !== false && (
        <details>
          <summary>With {methods?.map((method) => METHOD_WORDS[method]).join(" or ")}</summary>
          {form}
        </details>
      )}
      {issuers.length === 0 && form}
      {issuers.length === 0 && methods?.length === 0 && (
        <p>
          This gateway knows its users by the certificates of their browsers. Yours has none that it accepts.
        </p>
      )}
    </main>
  );
}

const METHOD_WORDS: Readonly<Record<Method, string>> = { "api-key": "a key", token: "a token" };

interface CredentialFormProps extends Pick<SignInProps, "session" | "onDone"> {
  readonly methods: readonly Method[];
}

/** The form for a credential, which stays in this tab, or in memory if its user says so. */
function CredentialForm({ session, methods, onDone }: CredentialFormProps) {
  const [secret, setSecret] = useState("");
  const [kind, setKind] = useState<Method>(methods[0] ?? "api-key");
  const [isKept, setKept] = useState(true);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const signIn = async () => {
    const next: Session = { ...session, credential: { kind, secret: secret.trim() } };
    await tryOut(next, METHODS[kind].replace("Token", "token"));
    if (isKept) storeSession(sessionStorage, next);
    onDone(next);
  };
  return (
    <ActionForm action="Sign in" isReady={secret.trim() !== ""} run={signIn}>
      {methods.length > 1 && (
        <label>
          Credential
          <select value={kind} onChange={({ currentTarget }) => setKind(currentTarget.value as Method)}>
            {methods.map((method) => (
              <option key={method} value={method}>
                {METHODS[method]}
              </option>
            ))}
          </select>
        </label>
      )}
      <label>
        {METHODS[kind]}
        <input
          ref={field}
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
        Stay signed in until this tab closes
      </label>
    </ActionForm>
  );
}

/** Makes a call that every caller who is known may make, or is refused for another reason. */
async function tryOut(session: Session, name: string): Promise<void> {
  try {
    await connectGateway(session).namespace.describeNamespace({ id: [] });
  } catch (thrown) {
    if (isUnauthenticated(thrown))
      throw new LanceError("Unauthenticated", `The gateway does not know this ${name}, or it has expired.`);
  }
}
