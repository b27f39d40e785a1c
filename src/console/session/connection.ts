import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { createFetchTransport, errorOfConnect, openConnect } from "../../client/connections/connect.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import { headersOf, type Session } from "./credential.ts";

/** A gateway, as the console calls it. */
export interface Connection {
  readonly namespace: Namespace;
  readonly session: Session;
  /** Calls a path of the gateway beside the contract, with the credential. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Calls an operation of the gateway beside the contract. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    signal?: AbortSignal,
  ): Promise<MessageShape<O>>;
  /** Calls an operation whose answer is a stream. */
  download<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal?: AbortSignal,
  ): AsyncIterable<MessageShape<O>>;
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
  const transport = createFetchTransport(uri, call);
  const open = (send: Fetch) => createNamespace(openConnect(properties, send));
  return {
    namespace: open(call),
    session,
    fetch: (path, init = {}) =>
      call(uri + path, { ...init, headers: { ...headers, ...(init.headers as Record<string, string>) } }),
    async unary(method, request, signal = new AbortController().signal) {
      try {
        const message = create(method.input, request);
        return (await transport.unary(method, signal, undefined, headers, message as never)).message;
      } catch (thrown) {
        throw errorOfConnect(thrown, { signal, method, headers });
      }
    },
    async *download(method, request, signal = new AbortController().signal) {
      async function* messages() {
        yield create(method.input, request);
      }
      try {
        yield* (await transport.stream(method, signal, undefined, headers, messages() as never)).message;
      } catch (thrown) {
        throw errorOfConnect(thrown, { signal, method, headers });
      }
    },
    uploading: (onProgress) => open(watched(sendWithProgress(onProgress))),
  };
}

/** Sends an HTTP request. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * Returns a function that sends requests as fetch does, and reports how much of a body is sent, which fetch does not.
 *
 * @param onProgress called with numbers from 0 to 1.
 */
export function sendWithProgress(onProgress: (part: number) => void): Fetch {
  return (url, { method = "GET", headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, url);
      request.responseType = "arraybuffer";
      const own = [...new Headers(headers)].filter(([name]) => name !== "user-agent");
      for (const [name, value] of own) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
      request.onload = () =>
        resolve(
          new Response(request.response as ArrayBuffer, {
            status: request.status,
            headers: parseHeaders(request.getAllResponseHeaders()),
          }),
        );
      // The errors of fetch, by which the client knows a lost connection.
      request.onerror = () => reject(new TypeError("the request failed"));
      request.onabort = () => reject(signal?.reason ?? new DOMException("aborted", "AbortError"));
      signal?.addEventListener("abort", () => request.abort(), { once: true });
      request.send(body as XMLHttpRequestBodyInit);
    });
}

function parseHeaders(lines: string): Headers {
  const headers = new Headers();
  for (const line of lines.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return headers;
}
