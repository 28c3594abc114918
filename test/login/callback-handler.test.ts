import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type BrowserEvent,
  type BrowserState,
  CallbackHandler,
  TRANSITIONS,
} from "../../src/login/callback-handler.js";
import { openSocket, raw, request, STATE, statusOf } from "./support.js";

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
