import { endSignIn, isReturning, placeBefore, type Surroundings } from "./code-flow.ts";
import { type Session, storedSession, storeSession } from "./credential.ts";

/** The state in which the console opens. */
export interface Start {
  readonly session: Session;
  /** Why a sign-in at an issuer failed. Default: it did not. */
  readonly failure?: string | undefined;
}

/** Returns the parts of this browser that signing in needs. */
export function surroundings(): Surroundings {
  return {
    storage: sessionStorage,
    address: new URL(location.href),
    send: (url, init) => fetch(url, init),
  };
}

/** Opens the session that the tab keeps, or that a sign-in begins from which the browser comes back. */
export async function openStart(): Promise<Start> {
  const session = storedSession(sessionStorage);
  const browser = surroundings();
  if (!isReturning(browser.address)) return { session };
  // The code does not stay in the address and in the history of the browser.
  history.replaceState(null, "", placeBefore(browser));
  try {
    const { issuer, accessToken } = await endSignIn(browser);
    const next: Session = { ...session, credential: { kind: "token", secret: accessToken, issuer } };
    storeSession(sessionStorage, next);
    return { session: next };
  } catch (thrown) {
    return { session, failure: (thrown as Error).message };
  }
}
