import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, vi } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { startDirectoryServer } from "../support/server.ts";

async function answering(status: number): Promise<Server> {
  const server = createServer((_request, response) => response.writeHead(status).end()).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  return server;
}

test("a gateway that can answer calls is ready, by its flags and by its variables", async (t) => {
  const server = await startDirectoryServer();
  t.onTestFinished(() => server.close());
  const print = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  t.onTestFinished(() => print.mockRestore());
  expect(await runProgram(["ready", "--port", `${server.port}`], {})).toBe(0);
  expect(await runProgram(["ready"], { LANCE_GATEWAY_PORT: `${server.port}` })).toBe(0);
  expect(print).toHaveBeenCalledWith(`the gateway at 127.0.0.1:${server.port} is ready\n`);
});

test("a gateway that drains is not ready, and a port without one is named", async (t) => {
  const server = await answering(503);
  t.onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const asking = () => runProgram(["ready", "--port", `${port}`], {});
  await expect(asking()).rejects.toThrow(`the gateway at 127.0.0.1:${port} is not ready`);
  server.closeAllConnections();
  server.close();
  await once(server, "close");
  await expect(asking()).rejects.toThrow(`no gateway answers at 127.0.0.1:${port}: connect ECONNREFUSED`);
});
