import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, onTestFinished, test, vi } from "vitest";
import { answer, failure, REQUEST, upstreamOf } from "../../../../test/fixtures/upstreams/plain-rest.ts";
import { until } from "../../../../test/support/until.ts";
import { LateSignal } from "../../../runtime/late-signal.ts";
import { UpstreamFailure } from "../transport/transport.ts";
import { PlainConnection } from "./connection.ts";

const TRANSPORT = new URL("../transport/undici-transport.ts", import.meta.url).href;

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
describe("a request", () => {
  test("has its host, its headers and the bytes of its body", async () => {
    const { send, seen } = await upstreamOf((socket) => socket.write(answer("ok")));
    await send({ body: '{"name":"\u00e9"}' });
    const [text = ""] = seen.requests;
    assert.match(
      text,
      /^POST \/v1\/table\/t\/describe HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\nconnection: keep-alive\r\n/,
    );
    assert.match(
      text,
      /\r\nx-request-id: 1\r\ncontent-type: application\/json\r\ncontent-length: 13\r\n\r\n/,
    );
    assert.ok(Buffer.from(text, "latin1").toString("utf8").endsWith('{"name":"\u00e9"}'));
    assert.equal(await send({ method: "GET", body: undefined }), "200 ok");
    assert.doesNotMatch(seen.requests[1] as string, /content-length/);
  });

  test("with a header that breaks its lines reaches no server", async () => {
    const { send, seen } = await upstreamOf((socket) => socket.write(answer("ok")));
    for (const pair of [
      ["x", "a\r\nb: c"],
      ["x\r\nb", "c"],
      ["x", "a\nb"],
      ["content-length", "9"],
    ]) {
      await assert.rejects(send({ headers: pair }), UpstreamFailure);
    }
    await assert.rejects(send({ target: "/ HTTP/1.1\r\n\r\nGET /" }), UpstreamFailure);
    assert.deepEqual(seen.requests, []);
  });
});

describe("an answer", () => {
  test("leaves its connection to the next request", async () => {
    const { send, seen } = await upstreamOf((socket, count) => socket.write(answer(String(count))));
    for (let count = 1; count < 6; count += 1) assert.equal(await send(), `200 ${count}`);
    assert.equal(seen.connections, 1);
  });

  test("may arrive in any pieces", async () => {
    for (const whole of [answer("\u00e9t\u00e9"), CHUNKED]) {
      const bytes = Buffer.from(whole);
      for (let at = 1; at < bytes.length; at += 1) {
        const { send } = await upstreamOf((socket) => {
          socket
            .setNoDelay(true)
            .write(bytes.subarray(0, at), () => setImmediate(() => socket.write(bytes.subarray(at))));
        });
        assert.equal(await send(), whole === CHUNKED ? "200 ok" : "200 \u00e9t\u00e9", String(at));
      }
    }
  });

  test("may be longer than a read", async () => {
    const body = "x".repeat(300_000);
    const { send, seen } = await upstreamOf((socket) => socket.write(answer(body)));
    for (let round = 0; round < 3; round += 1) assert.equal(await send(), `200 ${body}`);
    assert.equal(seen.connections, 1);
  });

  test("may have another form, in which undici reads it and those after it", async () => {
    const early = `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${answer("ok")}`;
    const untilEnd = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok";
    for (const text of [CHUNKED, early, answer("ok", "", "x: 1\r\nx: 2\r\n"), untilEnd]) {
      const { send, seen } = await upstreamOf((socket) => {
        socket.write(text);
        if (text === untilEnd) socket.end();
      });
      for (let round = 0; round < 3; round += 1) assert.equal(await send(), "200 ok", text);
      assert.equal(seen.requests.length, 3, "no request is sent twice");
    }
  });

  test("may take as long as it needs where nothing limits it", async () => {
    const [began, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { send } = await upstreamOf(
      (socket) => {
        void began.promise.then(() => socket.write(answer("ok").slice(0, -1)));
        void ended.promise.then(() => socket.write("k"));
      },
      { timeLimits: { firstByteMs: 0, idleMs: 0 } },
    );
    const checks = vi.spyOn(PlainConnection.prototype, "check");
    const { now } = performance;
    let waits = 0;
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + waits * 1_000_000);
    onTestFinished(() => void vi.restoreAllMocks());
    const answered = send();
    for (const wait of [began, ended]) {
      waits += 1;
      const before = checks.mock.calls.length;
      await until(() => checks.mock.calls.length > before);
      wait.resolve();
    }
    assert.equal(await answered, "200 ok");
  });

  test("that breaks off, or is none, fails by how far it came", async () => {
    const broken = [
      ["", "reset"],
      ["SSH-2.0-x\r\n", "malformed"],
      ["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok", "truncated"],
      ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", "truncated"],
      ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok", "truncated"],
    ] as const;
    for (const [text, kind] of broken) {
      const { send } = await upstreamOf((socket) => socket.end(text));
      await assert.rejects(send(), failure(kind), text);
    }
  });
});

describe("bytes that nobody asked for", () => {
  const forged = answer("forged");

  test("behind an answer end the connection", async () => {
    const { send, seen } = await upstreamOf((socket, count) => socket.write(answer(String(count), forged)));
    for (let count = 1; count < 4; count += 1) assert.equal(await send(), `200 ${count}`);
    assert.equal(seen.connections, 3);
  });

  test("on a connection without a request end it", async () => {
    const { send, seen } = await upstreamOf((socket, count) => {
      socket.write(answer(String(count)), () => setImmediate(() => socket.write(forged)));
    });
    for (let count = 1; count < 4; count += 1) {
      assert.equal(await send(), `200 ${count}`);
      await until(() => seen.closed === count);
    }
  });

  test("in front of an answer to the next request of the same turn do not become its answer", async () => {
    const { send } = await upstreamOf((socket, count) => {
      socket.write(answer(String(count)));
      socket.write(forged);
    });
    const answers = await Promise.all(Array.from({ length: 20 }, () => send()));
    assert.ok(
      answers.every((text) => /^200 \d+$/.test(text)),
      answers.join(),
    );
  });
});

describe("a connection", () => {
  test("ends ahead of the time that the server has announced", async () => {
    const { send, seen } = await upstreamOf((socket, count) => {
      socket.write(answer(String(count), "", `keep-alive: timeout=${count === 1 ? 1 : 60}\r\n`));
    });
    for (let count = 1; count < 4; count += 1) assert.equal(await send(), `200 ${count}`);
    assert.equal(seen.connections, 2);
  });

  test("keeps no program alive", async () => {
    const { uri, seen } = await upstreamOf((socket) =>
      socket.write(answer("ok", "", "keep-alive: timeout=600\r\n")),
    );
    const script = `
      import { createHttpTransport } from ${JSON.stringify(TRANSPORT)};
      const signal = new AbortController().signal;
      const { send } = createHttpTransport({ uri: ${JSON.stringify(uri)}, keepAliveMs: 600_000 });
      for (let round = 0; round < 3; round += 1) await send({ ...${JSON.stringify(REQUEST)}, signal });`;
    const program = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
    assert.deepEqual(await once(program, "exit"), [0, null]);
    assert.deepEqual([seen.connections, seen.requests.length], [1, 3]);
  });

  test("ends when it was idle, or has become old", async () => {
    for (const limits of [{ keepAliveMs: 40 }, { connectionAgeMs: 40 }]) {
      const { send, seen } = await upstreamOf((socket) => socket.write(answer("ok")), limits);
      await send();
      await until(() => seen.closed === 1);
      assert.equal(await send(), "200 ok");
    }
  });

  test("ends after its answer when it became old in use", async () => {
    const checks = vi.spyOn(PlainConnection.prototype, "check");
    onTestFinished(() => void vi.restoreAllMocks());
    const { send, seen } = await upstreamOf(
      (socket) => {
        const before = checks.mock.calls.length;
        const checked = until(() => checks.mock.calls.length > before);
        void checked.then(() => socket.write(answer("ok")));
      },
      { connectionAgeMs: 1, keepAliveMs: 600_000, timeLimits: { firstByteMs: 100 } },
    );
    for (let count = 1; count < 4; count += 1) {
      assert.equal(await send(), "200 ok");
      assert.equal(seen.connections, count);
    }
  });

  test("ends with its request, and not with one that was never sent", async () => {
    const { send, seen } = await upstreamOf((socket, count) => count === 1 && socket.write(answer("ok")));
    await send();
    const gone = new LateSignal();
    const unsent = send({ signal: gone });
    gone.abort(new Error("gone"));
    await assert.rejects(unsent, /gone/);
    // Its turn of the event loop ends, and so does the next one.
    for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
    const late = new LateSignal();
    const sent = send({ signal: late });
    await until(() => seen.requests.length === 2);
    late.abort(new Error("late"));
    await assert.rejects(sent, /late/);
    await until(() => seen.closed === 1);
    assert.equal(seen.connections, 1);
  });

  test("ends when the transport does, with an error for its request", async () => {
    const { send, transport, seen } = await upstreamOf(() => {});
    const pending = send();
    await until(() => seen.requests.length === 1);
    const closed = assert.rejects(pending, failure("reset"));
    await transport.close();
    await closed;
    await assert.rejects(send(), UpstreamFailure);
  });

  test("that is drained finishes its request", async () => {
    const sockets: Socket[] = [];
    const { send, transport, seen } = await upstreamOf((socket) => sockets.push(socket));
    const pending = send();
    await until(() => sockets.length === 1);
    let isDrained = false;
    const drained = transport.drain().then(() => {
      isDrained = true;
    });
    await new Promise(setImmediate);
    assert.equal(isDrained, false);
    sockets[0]?.write(answer("ok"));
    assert.equal(await pending, "200 ok");
    await drained;
    await until(() => seen.closed === 1);
  });
});
