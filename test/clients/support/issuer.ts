import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { Provider } from "oidc-provider";
import type { TestContext } from "vitest";

/** An issuer on loopback. */
export interface TestIssuer {
  readonly issuer: string;
  /**
   * Answers requests by a configuration of oidc-provider from now on. Before the first one, the issuer answers 503.
   *
   * @param pages answers the requests that it returns true for in place of the provider. Default: none.
   */
  serve(configuration: object, pages?: Pages): void;
}

/** Answers requests of people who sign in; resolves to whether the request was one of them. */
export type Pages = (provider: Provider, ...exchange: Parameters<RequestListener>) => Promise<boolean>;

/** Starts an issuer. */
export async function startIssuer({
  onTestFinished,
}: Pick<TestContext, "onTestFinished">): Promise<TestIssuer> {
  let listener: RequestListener | undefined;
  const server = createServer((request, response) => {
    if (listener === undefined) response.writeHead(503).end();
    else listener(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    serve(configuration, pages = async () => false) {
      const provider = new Provider(issuer, configuration);
      const answer = provider.callback();
      listener = (...exchange) =>
        void pages(provider, ...exchange).then((isAnswered) => isAnswered || answer(...exchange));
    },
  };
}

/** Draws a key by which an issuer signs. */
export async function newKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: "RS256", use: "sig" };
}
