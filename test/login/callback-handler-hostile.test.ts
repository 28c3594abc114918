import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  callbackUrl,
  openSocket,
  openTest,
  openWaiting,
  raw,
  request,
  STATE,
  statusOf,
  waitForEnd,
} from "./support.js";

const RIGHT = `/callback?code=c0de-42&state=${STATE}`;

/** What must still work after every attempt. */
async function expectLoginStillWorks(port: number, callback: Promise<URLSearchParams>): Promise<void> {
  expect(statusOf(await raw(port, request(port, RIGHT)))).toBe(303);
  expect((await callback).get("code")).toBe("c0de-42");
}

describe("a request that is not the callback changes nothing", () => {
  test.each([
    ["no state", "/callback?code=forged", 400],
    ["a wrong state", "/callback?code=forged&state=wrong", 400],
    ["an empty state", "/callback?code=forged&state=", 400],
    ["the right state cut short", `/callback?code=forged&state=${STATE.slice(0, -1)}`, 400],
    ["an error without a state", "/callback?error=access_denied&error_description=boo", 400],
    ["an error with a wrong state", "/callback?error=access_denied&state=wrong", 400],
    ["the state twice", `${RIGHT}&state=other`, 400],
    ["the code twice", `${RIGHT}&code=forged`, 400],
    ["the issuer twice", `${RIGHT}&iss=https://a.example&iss=https://b.example`, 400],
    ["the error twice", `/callback?state=${STATE}&error=a&error=b`, 400],
    ["the root", "/", 404],
    ["a favicon", "/favicon.ico", 404],
    ["robots.txt", "/robots.txt", 404],
    ["dots before the path", `/../callback?code=forged&state=${STATE}`, 404],
    ["a second slash", `//callback?code=forged&state=${STATE}`, 404],
    ["an escaped path", `/%63allback?code=forged&state=${STATE}`, 404],
    ["a longer path", `/callback/?code=forged&state=${STATE}`, 404],
    ["another case", `/Callback?code=forged&state=${STATE}`, 404],
    ["a path parameter", `/callback;x?code=forged&state=${STATE}`, 404],
  ])("%s", async (_, target, status) => {
    const { port, callback } = await openWaiting();
    const answer = await raw(port, request(port, target));
    expect(statusOf(answer)).toBe(status);
    expect(answer).not.toMatch(/forged|boo|location:/i);
    await expectLoginStillWorks(port, callback);
  });

  test.each([
    ["an origin", "Origin: https://evil.example", 403],
    ["its own origin", "Origin: http://127.0.0.1", 403],
    ["an opaque origin", "Origin: null", 403],
    ["an image", "Sec-Fetch-Dest: image", 403],
    ["a frame", "Sec-Fetch-Dest: iframe", 403],
    ["a fetch", "Sec-Fetch-Dest: empty", 403],
    ["a prefetch", "Sec-Purpose: prefetch", 403],
    ["an older prefetch", "Purpose: prefetch", 403],
    ["a second host", "Host: evil.example", 400],
    ["a body", "Content-Length: 3", 400],
    ["a chunked body", "Transfer-Encoding: chunked", 400],
    ["a header that is none", "no colon here", 400],
    ["a control character in a header", "X-A: a\x01b", 400],
    ["a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked", 400],
  ])("the right state with %s", async (_, header, status) => {
    const { port, callback } = await openWaiting();
    const answer = await raw(port, request(port, RIGHT, [header]));
    // Of two Host headers either the parser or the rules complain.
    expect([status, status === 400 ? 403 : status]).toContain(statusOf(answer));
    await expectLoginStillWorks(port, callback);
  });

  test("a navigation that says what it is passes", async () => {
    const { port, callback } = await openWaiting();
    const headers = ["Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: cross-site"];
    expect(statusOf(await raw(port, request(port, RIGHT, headers)))).toBe(303);
    expect((await callback).get("code")).toBe("c0de-42");
  });

  test.each([
    "evil.example",
    "localhost:PORT",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]:PORT",
    "127.1:PORT",
    "127.0.0.1:PORT.",
    "",
  ])("the right state for the host %j", async (host) => {
    const { port, callback } = await openWaiting();
    const line = `GET ${RIGHT} HTTP/1.1\r\nHost: ${host.replace("PORT", String(port))}\r\n\r\n`;
    expect(statusOf(await raw(port, line))).toBe(403);
    await expectLoginStillWorks(port, callback);
  });

  test("the right state without a host", async () => {
    const { port, callback } = await openWaiting();
    expect(statusOf(await raw(port, `GET ${RIGHT} HTTP/1.1\r\n\r\n`))).toBe(400);
    expect(statusOf(await raw(port, `GET ${RIGHT} HTTP/1.0\r\n\r\n`))).toBe(403);
    await expectLoginStillWorks(port, callback);
  });

  test.each(["POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])("the right state by %s", async (method) => {
    const { port, callback } = await openWaiting();
    const answer = await raw(port, request(port, RIGHT, ["Content-Length: 0"], method));
    expect(statusOf(answer)).toBe(405);
    expect(answer).toMatch(/^allow: GET\r$/im);
    await expectLoginStillWorks(port, callback);
  });

  test("an absolute-form target, CONNECT, an upgrade and something that is not HTTP", async () => {
    const { port, callback } = await openWaiting();
    expect(statusOf(await raw(port, request(port, `http://127.0.0.1:${port}${RIGHT}`)))).toBe(403);
    expect(statusOf(await raw(port, request(port, `http://evil.example${RIGHT}`)))).toBe(403);
    expect(statusOf(await raw(port, request(port, "*", [], "OPTIONS")))).toBe(403);
    expect(await raw(port, request(port, `127.0.0.1:${port}`, [], "CONNECT"))).toBe("");
    expect(statusOf(await raw(port, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"))).toBe(400);
    await expectLoginStillWorks(port, callback);
  });

  test("a callback before any is expected", async () => {
    const { loopback, port, controller } = await openTest();
    expect(statusOf(await raw(port, request(port, RIGHT)))).toBe(400);
    await expectLoginStillWorks(port, loopback.receive(STATE, controller.signal));
  });

  test("what is pipelined behind a forged callback", async () => {
    const { port, callback } = await openWaiting();
    const smuggled = `/callback?code=smuggled&state=${STATE}`;
    const answer = await raw(port, request(port, "/callback?state=wrong") + request(port, smuggled));
    expect(statusOf(answer)).toBe(400);
    expect(answer).not.toMatch(/ 303 /);
    await expectLoginStillWorks(port, callback);
  });

  test("headers of 64 KB", async () => {
    const { port, callback } = await openWaiting();
    const answer = await raw(port, request(port, RIGHT, [`X-Filler: ${"a".repeat(64 * 1024)}`]));
    // The answer may be lost when the rest of the headers meets a closed connection.
    expect([431, 0]).toContain(statusOf(answer));
    await expectLoginStillWorks(port, callback);
  });
});

describe("a second callback", () => {
  test("with the right state gets 409, and one with a wrong state still 400", async () => {
    const { port, callback } = await openWaiting();
    expect(statusOf(await raw(port, request(port, RIGHT)))).toBe(303);
    expect(statusOf(await raw(port, request(port, `/callback?code=second&state=${STATE}`)))).toBe(409);
    expect(statusOf(await raw(port, request(port, "/callback?code=second&state=wrong")))).toBe(400);
    expect((await callback).get("code")).toBe("c0de-42");
  });

  test("of many at the same time: exactly one wins", async () => {
    const { port, callback } = await openWaiting();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, nth) => raw(port, request(port, `/callback?code=${nth}&state=${STATE}`))),
    );
    expect(answers.map(statusOf).sort()).toEqual([303, ...Array.from({ length: 19 }, () => 409)]);
    expect(answers[Number((await callback).get("code"))]).toMatch(/ 303 /);
  });
});

describe("a flood", () => {
  test("of 2,000 forged callbacks at once does not keep the real one out, and is reported once", async () => {
    let reports = 0;
    const { loopback, port, callback } = await openWaiting({ onProbe: () => reports++ });
    const forge = (nth: number) => raw(port, request(port, `/callback?code=forged&state=${nth}`));
    const first = Array.from({ length: 1_000 }, (_, nth) => forge(nth));
    // The newest connections close the oldest, which may be that of the browser: its user loads the page again.
    const load = () => fetch(callbackUrl(loopback.redirectUri));
    const browser = load().catch(() => Promise.allSettled(first).then(load));
    const second = Array.from({ length: 1_000 }, (_, nth) => forge(nth));
    expect((await callback).get("code")).toBe("c0de-42");
    const statuses = (await Promise.all([...first, ...second])).map(statusOf);
    expect(new Set(statuses.filter((status) => status !== 0))).toEqual(new Set([400]));
    expect(reports).toBe(1);
    await loopback.close({ ok: true });
    expect(await (await browser).text()).toContain("You are logged in");
  });

  test("is reported with the 50th wrong callback, not before", async () => {
    let reports = 0;
    const { port } = await openWaiting({ onProbe: () => reports++ });
    for (let nth = 1; nth <= 49; nth++) await raw(port, request(port, "/callback?state=wrong"));
    expect(reports).toBe(0);
    for (let nth = 50; nth <= 120; nth++) await raw(port, request(port, "/callback?state=wrong"));
    expect(reports).toBe(1);
  });

  test("of silent connections: no more than 32 stay open, and the oldest make room for the browser", async () => {
    const { port, callback } = await openWaiting();
    let ended = 0;
    const silent = Array.from({ length: 100 }, () => openSocket(port));
    for (const { closed } of silent) void closed.then(() => ended++);
    await Promise.all(silent.map(({ socket }) => new Promise((resolve) => socket.once("connect", resolve))));
    await expectLoginStillWorks(port, callback);
    await expect.poll(() => ended).toBeGreaterThanOrEqual(100 - 32);
  });

  test("does not push out the browser that waits for the end", async () => {
    const { loopback, port, callback } = await openWaiting();
    const { page } = await waitForEnd(port, await raw(port, request(port, RIGHT)));
    await callback;
    const silent = Array.from({ length: 100 }, () => openSocket(port));
    await Promise.all(silent.slice(0, 60).map(({ closed }) => closed));
    await loopback.close({ ok: true });
    expect(await page).toContain("You are logged in");
  });

  test("of drops: an incomplete request is dropped after its time limit, as is a silent connection", async () => {
    const { port, callback } = await openWaiting({ requestTimeoutMs: 2000 });
    const slow = openSocket(port);
    const silent = openSocket(port);
    slow.socket.write(`GET ${RIGHT} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`);
    const dripping = setInterval(() => slow.socket.write("X-A: b\r\n"), 20);
    const answer = await slow.closed;
    clearInterval(dripping);
    expect([408, 0]).toContain(statusOf(answer));
    await silent.closed;
    await expectLoginStillWorks(port, callback);
  });

  test("of connections that are refused and stay: they are ended", async () => {
    const { port, callback } = await openWaiting();
    const { socket } = openSocket(port, { allowHalfOpen: true });
    socket.write("no HTTP\r\n\r\n");
    // Our side of the connection stays open, so that only a reset ends it.
    const reset = new Promise((resolve) => socket.once("error", resolve));
    const poking = setInterval(() => socket.write("x"), 200);
    expect(await reset).toMatchObject({ code: expect.stringMatching(/ECONNRESET|EPIPE/) });
    clearInterval(poking);
    await expectLoginStillWorks(port, callback);
  });

  test("the time limit is five seconds, for the headers too", async () => {
    const { port } = await openWaiting();
    const limits = new Promise((resolve) => {
      const onRequest = (message: unknown) => {
        const { server } = message as { server: Server };
        if ((server.address() as AddressInfo).port === port) resolve([server.headersTimeout, server.requestTimeout]);
      };
      subscribe("http.server.request.start", onRequest);
      onTestFinished(() => void unsubscribe("http.server.request.start", onRequest));
    });
    await raw(port, request(port, "/"));
    expect(await limits).toEqual([5000, 5000]);
  });

  test("a browser that waits longer than that for the outcome is not dropped", async () => {
    const { loopback, callback } = await openWaiting({ requestTimeoutMs: 2000 });
    const browser = fetch(callbackUrl(loopback.redirectUri)).then((response) => response.text());
    await callback;
    await new Promise((resolve) => setTimeout(resolve, 2500));
    await loopback.close({ ok: true });
    expect(await browser).toContain("You are logged in");
  });
});
