import { openConnect } from "../../client/connections/connect.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import { headersOf, type Session } from "./credential.ts";
import { type Fetch, sendWithProgress } from "./progress.ts";

/** A gateway, as the console calls it. */
export interface Connection {
  readonly namespace: Namespace;
  readonly session: Session;
  /** Calls a path of the gateway beside the contract, with the credential. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Returns the client for an upload that reports how much of its body is sent, from 0 to 1. */
  uploading(onProgress: (part: number) => void): Namespace;
}

/** Address of the gateway: the page is at `console/` below it. */
export function gatewayAddress(page: string): string {
  return new URL("..", page).href.replace(/\/$/, "");
}

/**
 * Connects to the gateway that the page comes from, over the Connect protocol.
 *
 * @param onRefused called when the gateway does not accept the credential. Default: the caller sees it from the error.
 */
export function connectGateway(session: Session, onRefused: () => void = () => {}): Connection {
  const uri = gatewayAddress(location.href);
  const watched =
    (send: Fetch): Fetch =>
    async (url, init) => {
      const response = await send(url, init);
      if (response.status === 401) onRefused();
      return response;
    };
  const call = watched((url, init) => fetch(url, init));
  const headers = headersOf(session);
  const named = Object.entries(headers).map(([name, value]) => [`headers.${name}`, value] as const);
  const properties = { uri, ...Object.fromEntries(named) };
  const open = (send: Fetch) => createNamespace(openConnect(properties, send));
  return {
    namespace: open(call),
    session,
    fetch: (path, init = {}) =>
      call(uri + path, { ...init, headers: { ...headers, ...(init.headers as Record<string, string>) } }),
    uploading: (onProgress) => open(watched(sendWithProgress(onProgress))),
  };
}
