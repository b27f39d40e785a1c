import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";
import { makeTlsFiles } from "../../../test/fixtures/server/tls.ts";
import { memoryLog } from "../../../test/fixtures/wires/grpc.ts";
import type { Certificate } from "../../../test/support/certificates.ts";
import { openTlsIdentity } from "./identity.ts";

/** Connects and returns the server's certificate. */
async function certificateAt(port: number, ca: string): Promise<[TLSSocket, PeerCertificate]> {
  const socket = connect({ port, host: "127.0.0.1", ca });
  await once(socket, "secureConnect");
  socket.on("error", () => {});
  return [socket, socket.getPeerCertificate()];
}

describe("the files of TLS", () => {
  it("are read again when they change; connections keep the certificate with which they began", async () => {
    await using world = await makeTlsFiles();
    const { identity } = await world.open();
    await using server = await startServer({ tls: identity });
    const [first, before] = await certificateAt(server.port, world.ca);
    await world.renew({ commonName: "renewed" });
    await expect
      .poll(async () => {
        const [socket, { subject }] = await certificateAt(server.port, world.ca);
        socket.destroy();
        return subject.CN;
      })
      .toBe("renewed");
    assert.equal(before.subject.CN, "localhost");
    first.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert.match(String((await once(first, "data"))[0]), /^HTTP\/1\.1 200/);
    identity.close();
  });

  it("stay as they were when the key is not that of the certificate, until it is", async () => {
    await using world = await makeTlsFiles();
    const { identity, lines } = await world.open();
    await using server = await startServer({ tls: identity });
    const renewed = await world.sign({ commonName: "renewed" });
    await writeFile(world.files.certificate, renewed.cert);
    await expect.poll(() => lines.some(({ level }) => level === 50)).toBe(true);
    const [socket, { subject }] = await certificateAt(server.port, world.ca);
    assert.equal(subject.CN, "localhost");
    socket.destroy();
    await writeFile(world.files.key, renewed.key);
    await expect.poll(() => identity.material.leaf.subject).toBe("CN=renewed");
    assert.doesNotMatch(JSON.stringify(lines), /PRIVATE KEY/);
    identity.close();
  });

  it("stay as they were when the authorities of clients are lost", async () => {
    await using world = await makeTlsFiles();
    const { identity, lines } = await world.open({ asksClients: true });
    await writeFile(world.files.clientAuthorities, "");
    await expect.poll(() => lines.some(({ level }) => level === 50)).toBe(true);
    assert.equal(identity.material.ca, world.ca);
    identity.close();
  });

  it("stay as they were while a file of several certificates is only half written", async () => {
    await using world = await makeTlsFiles();
    await using other = await makeTlsFiles();
    const { identity, lines } = await world.open({ asksClients: true });
    const both = `${world.ca}${other.ca}`;
    await writeFile(world.files.clientAuthorities, both.slice(0, both.length - 100));
    await expect.poll(() => lines.some(({ level }) => level === 50)).toBe(true);
    assert.equal(identity.material.ca, world.ca);
    await writeFile(world.files.clientAuthorities, both);
    await expect.poll(() => identity.material.ca).toBe(both);
    identity.close();
  });

  it("are read when a link leads to another folder, as Kubernetes replaces them", async () => {
    await using world = await makeTlsFiles();
    const folder = dirname(world.files.certificate);
    const install = async (name: string, { cert, key }: Certificate) => {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "tls.crt"), cert);
      await writeFile(join(folder, name, "tls.key"), key);
      await symlink(name, join(folder, "..new"));
      await rename(join(folder, "..new"), join(folder, "..data"));
    };
    await install("..1", await world.sign({ commonName: "first" }));
    const files = { certificate: join(folder, "tls.crt"), key: join(folder, "tls.key") };
    for (const path of Object.values(files)) await symlink(`..data/${basename(path)}`, path);
    const { log, lines } = memoryLog();
    const identity = await openTlsIdentity({ files, log, intervalMs: 10 });
    for (const name of ["second", "third"]) {
      await install(`..${name}`, await world.sign({ commonName: name }));
      await expect.poll(() => identity.material.leaf.subject).toBe(`CN=${name}`);
    }
    assert.deepEqual(
      lines.filter(({ level }) => level === 50),
      [],
    );
    identity.close();
  });

  it("make later connections trust new authorities only, also those that resume a session", async () => {
    await using world = await makeTlsFiles();
    await using other = await makeTlsFiles();
    const { identity } = await world.open({ asksClients: true });
    await using server = await startServer({
      tls: identity,
      rest: (request, response) => response.end(String((request.socket as TLSSocket).authorized)),
    });
    const mine = await world.sign();
    const ask = async (session?: Buffer) => {
      const options = { port: server.port, host: "127.0.0.1", ca: world.ca, ...mine };
      const socket = connect(session === undefined ? options : { ...options, session });
      const given = new Promise<Buffer>((resolve) => socket.once("session", resolve));
      let answer = "";
      socket.on("data", (piece) => {
        answer += piece;
      });
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
      await once(socket, "close");
      return { isTrusted: answer.endsWith("true"), given };
    };
    const { isTrusted, given } = await ask();
    assert.equal(isTrusted, true);
    const session = await given;
    assert.equal((await ask(session)).isTrusted, true);
    await writeFile(world.files.clientAuthorities, other.ca);
    await expect.poll(async () => (await ask(session)).isTrusted).toBe(false);
    identity.close();
  });

  it("are refused at first with a line that says what is wrong", async () => {
    await using world = await makeTlsFiles();
    const { files, install, sign, open } = world;
    const refused = async (pattern: RegExp, asksClients = false) => {
      await assert.rejects(open({ asksClients }), ({ message }: Error) => {
        assert.match(message, pattern);
        assert.doesNotMatch(message, /\n|PRIVATE/);
        return true;
      });
      await install(await sign());
    };
    await writeFile(files.key, (await sign()).key);
    await refused(/key\.pem is not the key of the certificate in .*cert\.pem/);
    await writeFile(files.key, "nothing");
    await refused(/key\.pem holds no private key/);
    const encrypted = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" } as const;
    const { privateKey } = generateKeyPairSync("ec", {
      namedCurve: "P-256",
      privateKeyEncoding: encrypted,
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    await writeFile(files.key, privateKey);
    await refused(/key\.pem is encrypted/);
    await writeFile(files.certificate, "nothing");
    await refused(/cert\.pem holds no certificate/);
    await writeFile(files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    await refused(/cert\.pem: certificate 1 cannot be read/);
    await writeFile(files.clientAuthorities, "");
    await refused(/clients\.pem holds no certificate/, true);
    await rm(files.key);
    await refused(/key\.pem cannot be read: ENOENT/);
  });

  it("may hold a certificate that has expired, of which the log warns", async () => {
    await using world = await makeTlsFiles();
    await world.renew({ expires: new Date(Date.now() - 60_000) });
    const { identity, lines } = await world.open();
    assert.deepEqual(
      lines.map(({ level, msg }) => [level, msg]),
      [[40, "the certificate has expired"]],
    );
    identity.close();
  });
});
