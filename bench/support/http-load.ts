import autocannon from "autocannon";

/** What an HTTP/1.1 load runs against: one request, again and again. */
export interface HttpLoad {
  readonly port: number;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly connections: number;
  readonly seconds: number;
}

/** Requests per second; any answer other than 2xx is thrown. */
export async function runHttpLoad(load: HttpLoad): Promise<number> {
  const result = await autocannon({
    url: `http://127.0.0.1:${load.port}${load.path}`,
    method: load.method,
    headers: { "content-type": "application/json" },
    connections: load.connections,
    duration: load.seconds,
    ...(load.body === undefined ? {} : { body: load.body }),
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} answers other than 2xx and ${result.errors} errors at ${load.path}`);
  }
  return result.requests.total / result.duration;
}
