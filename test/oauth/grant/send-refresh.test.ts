import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createFetch } from "../../../src/http/node/network.js";
import { PendingRefreshes, refreshDurationMs, withSendDeadline } from "../../../src/oauth/grant/send-refresh.js";
import { leaseLost } from "../../../src/oauth/model/lease.js";
import { pendingError } from "../../helpers/captured.js";

describe.each([
  ["Node's fetch", globalThis.fetch],
  ["node:http", createFetch({}, undefined)],
])("a request under a lease, over %s", (_over, send) => {
  let server: Server;
  let url: string;
  let received = 0;

  beforeAll(async () => {
    server = createServer((_request, response) => {
      received++;
      response.end("ok");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterAll(() => server.close());

  const post = () => send(url, { method: "POST", body: "refresh_token=x" });

  it("leaves while the lease is good", async () => {
    expect((await withSendDeadline({ left: () => 1 }, post)).status).toBe(200);
    expect(received).toBe(1);
  });

  it("does not leave once it is over, however far the connection had come", async () => {
    received = 0;
    let left = 1;
    const sent = withSendDeadline({ left: () => left }, () => {
      const reply = post();
      left = 0;
      return reply;
    });
    expect(await pendingError(sent)).toMatchObject({ code: "lease_lost", class: "unavailable" });
    // On a connection that was open already as well.
    left = 0;
    expect(await pendingError(withSendDeadline({ left: () => left }, post))).toMatchObject({ code: "lease_lost" });
    expect(received).toBe(0);
  });

  it("does not leave with too little of the lease, and says why", async () => {
    received = 0;
    const lease = { left: () => 1, maySend: () => false, lost: () => leaseLost("too little is left") };
    await expect(withSendDeadline(lease, post)).rejects.toThrow("too little is left");
    expect(received).toBe(0);
  });

  it("affects no other request", async () => {
    received = 0;
    await withSendDeadline({ left: () => 0 }, async () => undefined);
    expect((await post()).status).toBe(200);
    expect(received).toBe(1);
  });
});

describe("work under a lease, in a runtime that is not Node", () => {
  it.each<[string, object | undefined]>([
    ["no process", undefined],
    ["no way to its modules", {}],
    ["no such modules", { getBuiltinModule: () => undefined }],
    ["no channels", { getBuiltinModule: (name: string) => (name.endsWith("hooks") ? process : undefined) }],
    ["no contexts", { getBuiltinModule: (name: string) => (name.endsWith("channel") ? process : undefined) }],
  ])("runs where there are %s", async (_what, other) => {
    vi.resetModules();
    const fresh = await import("../../../src/oauth/grant/send-refresh.js");
    vi.stubGlobal("process", other);
    try {
      // The runtime is looked at before the work begins.
      const work = fresh.withSendDeadline({ left: () => 1 }, async () => "sent");
      vi.unstubAllGlobals();
      expect(await work).toBe("sent");
    } finally {
      vi.unstubAllGlobals();
      vi.resetModules();
    }
  });
});

it("a refresh may take the time of its request, of a second one, and of the save", () => {
  expect(refreshDurationMs(15_000)).toBe(25_000);
});

describe("the refreshes that have begun", () => {
  /** A clock whose time passes when a test says so. */
  function slowClock() {
    let end = () => {};
    const sleep = (_ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        end = resolve;
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    return { clock: { sleep }, pass: () => end() };
  }

  it("are waited for, and no other one begins", async () => {
    const pending = new PendingRefreshes();
    const { clock } = slowClock();
    let finish = (_result: string) => {};
    const first = pending.run(
      () =>
        new Promise<string>((resolve) => {
          finish = resolve;
        }),
    );
    let save = () => {};
    pending.add(
      new Promise<void>((_, reject) => {
        save = () => reject(new Error("given up"));
      }),
    );
    expect(pending.isClosed).toBe(false);
    let isClosed = false;
    const closed = pending.close(1000, clock).finally(() => {
      isClosed = true;
    });
    expect(pending.isClosed).toBe(true);
    await expect(pending.run(async () => "another")).rejects.toMatchObject({
      code: "aborted",
      class: "aborted",
      message: "the client is closed: it refreshes no token any more",
    });
    finish("done");
    expect(await first).toBe("done");
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    save();
    expect(await closed).toBe(true);
  });

  it("are not waited for longer than the time that is given", async () => {
    const pending = new PendingRefreshes();
    const { clock, pass } = slowClock();
    pending.add(new Promise(() => {}));
    const closed = pending.close(1000, clock);
    pass();
    expect(await closed).toBe(false);
  });

  it("are none where nothing was begun", async () => {
    expect(await new PendingRefreshes().close(1000, slowClock().clock)).toBe(true);
  });
});
