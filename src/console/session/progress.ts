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
