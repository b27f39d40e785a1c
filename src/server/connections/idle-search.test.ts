import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createIdleSearch } from "./idle-search.ts";

interface Connection {
  idleSince: number | undefined;
}

describe("createIdleSearch", () => {
  it("finds the first connection that has been idle for long enough", () => {
    const search = createIdleSearch<Connection>(
      ({ idleSince }) => idleSince,
      () => 100,
    );
    const connections = [{ idleSince: undefined }, { idleSince: 50 }, { idleSince: 20 }, { idleSince: 10 }];
    assert.equal(search.find(connections, 30), connections[2]);
    assert.equal(search.find(connections, 10), undefined);
  });

  it("looks at no connection until one can have been idle for long enough", () => {
    let [now, looks] = [100, 0];
    const search = createIdleSearch<Connection>(
      ({ idleSince }) => {
        looks += 1;
        return idleSince;
      },
      () => now,
    );
    const connections: Connection[] = [{ idleSince: undefined }, { idleSince: 60 }, { idleSince: 70 }];
    for (now = 101; now <= 160; now++) assert.equal(search.find(connections, now - 100), undefined);
    assert.equal(looks, 3);
    connections[1] = { idleSince: undefined };
    connections[0] = { idleSince: 140 };
    assert.equal(search.find(connections, 61), undefined);
    assert.equal(search.find(connections, 71), connections[2]);
  });

  it("finds a connection that became idle after a search in vain", () => {
    let now = 100;
    const search = createIdleSearch<Connection>(
      ({ idleSince }) => idleSince,
      () => now,
    );
    assert.equal(search.find([{ idleSince: undefined }], 0), undefined);
    now = 201;
    const connections = [{ idleSince: 100 }];
    assert.equal(search.find(connections, 101), connections[0]);
  });
});
