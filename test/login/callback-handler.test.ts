import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type BrowserEvent,
  type BrowserState,
  CallbackHandler,
  TRANSITIONS,
} from "../../src/login/callback-handler.js";
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

const STATES = ["expected", "redirected", "waiting", "served", "gone"] as const;
const EVENTS = ["callback", "callbackLost", "pageRequested", "pageSent", "pageLost", "anotherRequest"] as const;

/** A handler behind a real server, and what can happen to it. */
async function open() {
  const hosts = new Set<string>();
  const held: Socket[] = [];
  const handler = new CallbackHandler({
    hosts,
    path: "/callback",
    publicPath: "/callback",
    onProbe: () => {},
    onOtherPath: () => {},
    onStatelessError: () => {},
    keepAlive: (socket) => held.push(socket),
  });
  let isSlow = false;
  let send = () => {};
  let isCut = false;
  let losses = 0;
  const server = createServer((incoming, response) => {
    // As where the system has not taken the answer before the connection breaks.
    if (isCut) Object.defineProperty(response, "writableFinished", { value: false });
    if (isSlow) {
      const end = response.end.bind(response);
      response.end = (page: unknown) => {
        send = () => void end(page);
        return response;
      };
    }
    handler.handle(incoming, response);
    response.once("close", () => {
      if (!response.writableFinished) losses++;
    });
    if (isCut) incoming.socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  hosts.add(`127.0.0.1:${port}`);
  void handler.expect(STATE);

  let page = "/callback?done=none";
  const pages: ReturnType<typeof openSocket>[] = [];
  const callback = () => raw(port, request(port, `/callback?code=c&state=${STATE}`));
  const actions: Record<BrowserEvent, () => unknown> = {
    async callback() {
      page = /^location: (.*)$/im.exec(await callback())?.[1] ?? page;
    },
    async callbackLost() {
      isCut = true;
      await callback();
      isCut = false;
    },
    async pageRequested() {
      const browser = openSocket(port);
      const before = held.length;
      browser.socket.write(request(port, page));
      await expect.poll(() => held.length).toBe(before + 1);
      pages.push(browser);
    },
    pageSent: () => void handler.finish({ ok: true }),
    async pageLost() {
      for (const { socket } of pages) socket.destroy();
    },
    anotherRequest: () => void handler.redirectAgain("https://issuer.example/authorize"),
  };
  /** Holds the next page back until it is sent. */
  const slow = () => {
    isSlow = true;
    return { send: () => send(), cut: () => void held.at(-1)?.destroy() };
  };
  return { handler, port, actions, pages, slow, pagePath: () => page, lost: () => losses };
}

/** An event, and the state of the browser after it. */
type Step = `${BrowserEvent} > ${BrowserState}`;

describe("the browser of a callback", () => {
  test.each<[string, ...Step[]]>([
    ["reads the outcome", "callback > redirected", "pageRequested > waiting", "pageSent > served"],
    ["is lost before it is redirected", "callbackLost > gone"],
    ["leaves before the outcome is known", "callback > redirected", "pageRequested > waiting", "pageLost > gone"],
    [
      "comes back after it left",
      ...(["callback > redirected", "pageRequested > waiting", "pageLost > gone"] as const),
      ...(["pageRequested > waiting", "pageSent > served"] as const),
    ],
    [
      "opens the page in a second tab",
      ...(["callback > redirected", "pageRequested > waiting", "pageRequested > waiting"] as const),
      "pageSent > served",
    ],
    [
      "is sent to another request instead of the page",
      ...(["callback > redirected", "anotherRequest > expected", "callback > redirected"] as const),
      ...(["pageRequested > waiting", "pageSent > served"] as const),
    ],
    [
      "is sent to another request from the page",
      ...(["callback > redirected", "pageRequested > waiting", "anotherRequest > expected"] as const),
      ...(["callback > redirected", "pageRequested > waiting", "pageSent > served"] as const),
    ],
    ["is not sent to another request before it came", "anotherRequest > expected", "callback > redirected"],
    [
      "brings no second callback",
      ...(["callback > redirected", "callback > redirected", "pageRequested > waiting", "callback > waiting"] as const),
      ...(["pageSent > served", "callback > served"] as const),
    ],
    [
      "is not sent to another request once it has the outcome or is gone",
      ...(["callback > redirected", "pageRequested > waiting", "pageLost > gone", "anotherRequest > gone"] as const),
      ...(["pageRequested > waiting", "pageSent > served", "anotherRequest > served"] as const),
    ],
  ])("%s", async (_name, ...steps) => {
    const { handler, actions } = await open();
    expect(handler.browser).toBe("expected");
    for (const step of steps) {
      const [event, state] = step.split(" > ") as [BrowserEvent, BrowserState];
      await actions[event]();
      await expect.poll(() => handler.browser, { message: step }).toBe(state);
    }
  });

  test("changes its state by these events alone", () => {
    const table = EVENTS.map((event) => [event, ...STATES.map((state) => TRANSITIONS[state][event] ?? "-")]);
    expect([["", ...STATES], ...table]).toEqual([
      ["", "expected", "redirected", "waiting", "served", "gone"],
      ["callback", "redirected", "-", "-", "-", "-"],
      ["callbackLost", "-", "gone", "-", "-", "-"],
      ["pageRequested", "-", "waiting", "-", "waiting", "waiting"],
      ["pageSent", "-", "-", "served", "-", "-"],
      ["pageLost", "-", "-", "gone", "-", "-"],
      ["anotherRequest", "-", "expected", "expected", "-", "-"],
    ]);
  });

  test("is waited for until it has the outcome, and not where there is none or it is gone", async () => {
    const { handler, actions } = await open();
    await handler.finish({ ok: true });
    await actions.callback();
    const finished = handler.finish({ ok: true }).then(() => handler.browser);
    await actions.pageRequested();
    expect(await finished).toBe("served");
    await handler.finish({ ok: true });

    const other = await open();
    await other.actions.callback();
    await other.actions.pageRequested();
    await other.actions.pageLost();
    await expect.poll(() => other.handler.browser).toBe("gone");
    await other.handler.finish({ ok: true });
  });

  test.each<[string, BrowserState, "send" | "cut"]>([
    ["has the whole page", "served", "send"],
    ["leaves without it", "gone", "cut"],
  ])("is waited for until it %s", async (_what, state, end) => {
    const { handler, actions, slow } = await open();
    await actions.callback();
    let isFinished = false;
    const finished = handler.finish({ ok: true }).then(() => {
      isFinished = true;
    });
    const page = slow();
    await actions.pageRequested();
    expect([handler.browser, isFinished]).toEqual(["waiting", false]);
    page[end]();
    await finished;
    expect(handler.browser).toBe(state);
  });

  test("is not gone while one of its tabs waits", async () => {
    const { handler, actions, pages, lost } = await open();
    await actions.callback();
    await actions.pageRequested();
    await actions.pageRequested();
    pages[0]?.socket.destroy();
    await expect.poll(lost).toBe(1);
    expect(handler.browser).toBe("waiting");
    await handler.finish({ ok: true });
    expect(await pages[1]?.closed).toContain("You are logged in");
  });

  test("that is sent to another request finds nothing at the page of before, but the way to that request", async () => {
    const { handler, port, actions, pagePath } = await open();
    await actions.callback();
    const before = pagePath();
    const sent = handler.redirectAgain("https://issuer.example/authorize");
    expect(await raw(port, request(port, before))).toMatch(/^location: https:\/\/issuer\.example\/authorize\r$/im);
    expect(await sent).toBe(true);
    await actions.callback();
    expect(pagePath()).not.toBe(before);
    expect(statusOf(await raw(port, request(port, `/callback?code=c&state=${STATE}`)))).toBe(409);
  });
});

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
