import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { test } from "vitest";
import { makeAuthority } from "../../../test/support/certificates.ts";
import { carrierOf } from "./tls-carrier.ts";

test("_parent of a TLS socket is the accepted connection below it", async () => {
  const { cert, key } = await (await makeAuthority()).sign();
  const tls = createTlsServer({ cert, key });
  const port = createServer().listen(0, "127.0.0.1");
  await once(port, "listening");
  const client = connect({ port: (port.address() as AddressInfo).port, rejectUnauthorized: false });
  const [accepted] = (await once(port, "connection")) as [Socket];
  tls.emit("connection", accepted);
  const [secure] = (await once(tls, "secureConnection")) as [TLSSocket];
  assert.equal(carrierOf(secure), accepted);
  assert.equal(carrierOf(accepted), accepted);
  client.destroy();
  secure.destroy();
  port.close();
});
