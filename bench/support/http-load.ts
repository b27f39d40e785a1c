import autocannon from "autocannon";

/** An HTTP/1.1 load: a repeated request, or several requests in turn. */
export interface HttpLoad {
  readonly port: number;
  readonly method: "GET" | "POST";
  readonly path: string | readonly string[];
  readonly body?: string;
  readonly connections: number;
  readonly seconds: number;
}

/** Returns the requests per second; an answer other than 2xx throws. */
export async function runHttpLoad(load: HttpLoad): Promise<number> {
  const { method, body } = load;
  const paths = typeof load.path === "string" ? [load.path] : load.path;
  const headers = { "content-type": "application/json" };
  const result = await autocannon({
    url: `http://127.0.0.1:${load.port}`,
    requests: paths.map((path) => ({ method, path, headers, ...(body !== undefined && { body }) })),
    connections: load.connections,
    duration: load.seconds,
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} answers other than 2xx and ${result.errors} errors at ${paths[0]}`);
  }
  return result.requests.total / result.duration;
}
