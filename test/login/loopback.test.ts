import { createHash } from "node:crypto";
import { Server } from "node:http";
import { createServer, type ListenOptions } from "node:net";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { reserveRedirect } from "../../src/login/listen.js";
import { planRedirect, redirectUri } from "../../src/login/redirect-address.js";
import { DOCUMENT_PORTS } from "../../src/oauth/client/metadata-document.js";
import { withFastClock } from "../helpers/fast-clock.js";
import { freePort } from "../helpers/port.js";
import { remedy } from "../helpers/remedy.js";
import { rejection } from "../helpers/service.js";
import {
  bindPort,
  callbackUrl,
  DENIED,
  holdPort,
  isFree,
  openHandles,
  openTest,
  openWaiting,
  REFUSED,
  raw,
  request,
  STATE,
  statusOf,
  waitForEnd,
} from "./support.js";

describe("a callback listener", () => {
  test("is bound on 127.0.0.1 at a free port before anything is shown", async () => {
    const { loopback, port } = await openTest();
    expect(loopback.redirectUri).toBe(`http://127.0.0.1:${port}/callback`);
    expect(await isFree(port)).toBe(false);
    expect(await isFree(port, "::1")).toBe(true);
  });

  test("listens on both loopback addresses where the redirect address says localhost", async () => {
    const { loopback, port, callback } = await openWaiting({ redirectHost: "localhost" });
    expect(loopback.redirectUri).toBe(`http://localhost:${port}/callback`);
    expect(await isFree(port)).toBe(false);
    expect(await isFree(port, "::1")).toBe(false);
    const line = `GET /callback?code=c&state=${STATE} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`;
    expect(statusOf(await raw(port, line, "::1"))).toBe(303);
    expect((await callback).get("code")).toBe("c");
  });

  test("gives the parameters of the first callback with the right state", async () => {
    const { loopback, callback } = await openWaiting();
    const browser = fetch(callbackUrl(loopback.redirectUri, { iss: "https://issuer.example" }));
    expect(Object.fromEntries(await callback)).toEqual({
      code: "c0de-42",
      state: STATE,
      iss: "https://issuer.example",
    });
    await loopback.close({ ok: true });
    expect((await browser).status).toBe(200);
  });

  test("gives an error with the right state to the caller, and one without a code as well", async () => {
    for (const target of [`/callback?error=access_denied&state=${STATE}`, `/callback?state=${STATE}`]) {
      const { port, callback } = await openWaiting();
      expect(statusOf(await raw(port, request(port, target)))).toBe(303);
      const parameters = await callback;
      expect([parameters.get("code"), parameters.get("state")]).toEqual([null, STATE]);
    }
  });

  test("takes a path of its own", async () => {
    const { loopback, port, callback } = await openWaiting({ redirectPath: "/oauth/done" });
    expect(loopback.redirectUri).toBe(`http://127.0.0.1:${port}/oauth/done`);
    expect(statusOf(await raw(port, request(port, `/callback?code=c&state=${STATE}`)))).toBe(404);
    expect(statusOf(await raw(port, request(port, `/oauth/done?code=c&state=${STATE}`)))).toBe(303);
    expect((await callback).get("code")).toBe("c");
  });
});

describe("behind a proxy", () => {
  const uri = "https://dev.example/oauth/cb?app=1";
  const sent = (host: string, target: string) => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

  test.each(["dev.example", "127.0.0.1:<port>", "localhost:<port>"])(
    "takes a callback with the Host %s, and sends the browser to a page that the proxy knows",
    async (name) => {
      const at = await freePort();
      const { loopback, callback } = await openWaiting({
        redirectUri: uri,
        redirectPort: at,
        redirectPath: "/in",
        redirectHost: "localhost",
      });
      expect([loopback.redirectUri, loopback.listensAt]).toEqual([uri, `http://localhost:${at}/in`]);
      const host = name.replace("<port>", String(at));
      const answer = await raw(at, sent(host, `/in?app=1&code=c&state=${STATE}`));
      expect((await callback).get("code")).toBe("c");
      const [, page = ""] = /location: \/oauth\/cb(\?done=[\w-]{22})\r/i.exec(answer) ?? [];
      const last = raw(at, sent(host, `/in${page}`));
      await loopback.close({ ok: true });
      expect(await last).toContain("You are logged in");
    },
  );

  test("refuses any other Host", async () => {
    const at = await freePort();
    await openWaiting({ redirectUri: uri, redirectPort: at });
    for (const host of ["evil.example", "dev.example:8443", "xdev.example"])
      expect(statusOf(await raw(at, sent(host, `/oauth/cb?code=c&state=${STATE}`)))).toBe(403);
  });

  test("reports once that the response came to another path, and only with the right state", async () => {
    const at = await freePort();
    const onOtherPath = vi.fn();
    await openWaiting({ redirectUri: uri, redirectPort: at, onOtherPath });
    await raw(at, sent("dev.example", "/elsewhere?state=wrong"));
    expect(onOtherPath).not.toHaveBeenCalled();
    for (let nth = 0; nth < 2; nth++) await raw(at, sent("dev.example", `/elsewhere?code=c&state=${STATE}`));
    expect(onOtherPath.mock.calls).toEqual([["/elsewhere"]]);
  });
});

describe("the port", () => {
  test("that was wished for is used", async () => {
    const port = await freePort();
    expect((await openTest({ redirectPort: port })).loopback.redirectUri).toBe(`http://127.0.0.1:${port}/callback`);
  });

  test("that was wished for and is taken is an error that names it and the option", async () => {
    const port = await holdPort(0);
    const error = await rejection(openTest({ redirectPort: port }));
    expect(error).toMatchObject({
      code: "usage",
      class: "usage",
      remedy: remedy({ action: "configure", option: "redirectPort" }),
    });
    expect(error).toMatchObject({
      message: `port ${port} is needed for the redirect address http://127.0.0.1:${port}/callback, but another program uses it`,
      hint: `stop the program that uses port ${port}, or choose another`,
    });
  });

  /** Lets the binding of an address fail. */
  function failBinding(code: string, isFailing: (options: ListenOptions) => boolean) {
    const { listen: bind } = Server.prototype;
    const spied = vi.spyOn(Server.prototype, "listen").mockImplementation(function (this: Server, ...given: unknown[]) {
      if (!isFailing(given[0] as ListenOptions)) return Reflect.apply(bind, this, given);
      queueMicrotask(() => this.emit("error", Object.assign(new Error(`listen ${code}`), { code })));
      return this;
    });
    onTestFinished(() => void spied.mockRestore());
    return spied;
  }

  test("that was wished for and cannot be bound is an error with the reason of the system", async () => {
    const port = await freePort();
    failBinding("EACCES", () => true);
    expect(await rejection(openTest({ redirectPort: port }))).toMatchObject({
      message: `port ${port} is needed for the redirect address http://127.0.0.1:${port}/callback, but listen EACCES`,
    });
  });

  test("that cannot be bound anywhere is an error that names the other flows", async () => {
    failBinding("EMFILE", () => true);
    expect(await rejection(openTest())).toMatchObject({
      code: "usage",
      class: "usage",
      message: "nothing can listen on this machine's loopback address: listen EMFILE",
      hint: "log in without a listener: by the flow paste",
      remedy: remedy({ action: "configure", option: "flow" }),
    });
  });

  test("is looked for ten times where other programs hold ::1 of it", async () => {
    const spied = failBinding("EADDRINUSE", ({ host }) => host === "::1");
    expect(await rejection(openTest({ redirectHost: "localhost" }))).toMatchObject({ code: "usage" });
    expect(spied).toHaveBeenCalledTimes(20);
  });

  test("is taken also where another program holds only ::1 of it, which a browser may try first", async () => {
    const port = await freePort();
    await holdPort(port, "::1");
    expect(await rejection(openTest({ redirectPort: port, redirectHost: "localhost" }))).toMatchObject({
      code: "usage",
    });
    expect(await isFree(port)).toBe(true);
    expect((await openTest({ redirectPort: port })).port).toBe(port);
  });

  test.each(["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"])(
    "is bound on 127.0.0.1 alone without IPv6: %s",
    async (code) => {
      const spied = failBinding(code, ({ host }) => host !== "127.0.0.1");
      const { loopback, port } = await openTest({ redirectHost: "localhost" });
      spied.mockRestore();
      expect([loopback.redirectUri, await isFree(port)]).toEqual([`http://localhost:${port}/callback`, false]);
    },
  );

  test("of an earlier registration is used again, or another where it is taken", async () => {
    const port = await freePort();
    const preferred = `http://localhost:${port}/back`;
    const { loopback, controller } = await openTest({ preferred });
    expect(loopback.redirectUri).toBe(preferred);
    controller.abort();
    await loopback.close(REFUSED);
    await holdPort(port);
    const { loopback: other } = await openTest({ preferred });
    expect(other.redirectUri).toMatch(/^http:\/\/localhost:\d+\/back$/);
    expect(other.redirectUri).not.toBe(preferred);
  });

  test("is never shared", async () => {
    const { port } = await openTest();
    expect(await rejection(bindPort(port))).toMatchObject({ code: "EADDRINUSE" });
    expect(await rejection(bindPort(port, "0.0.0.0"))).toMatchObject({ code: "EADDRINUSE" });
  });
});

describe("the last page", () => {
  test("comes only after the end of the login is known, and then says that it went well", async () => {
    const { loopback, port, callback } = await openWaiting();
    const { page, isAnswered } = await waitForEnd(
      port,
      await raw(port, request(port, `/callback?code=c&state=${STATE}`)),
    );
    await callback;
    expect(isAnswered()).toBe(false);
    await loopback.close({ ok: true });
    expect(await page).toContain("You are logged in");
  });

  test("of a failure shows its class and nothing from a request", async () => {
    const { loopback, port, callback } = await openWaiting();
    const target = `/callback?state=${STATE}&error=%3Cb%3EPLANTED&error_description=PLANTED`;
    const { page } = await waitForEnd(port, await raw(port, request(port, target)));
    await callback;
    await loopback.close({ ok: false, error: DENIED });
    expect(await page).toContain("The login failed");
    expect(await page).not.toMatch(/PLANTED|SECRET-DETAIL|logged in\./);
  });

  test("has an address without the code", async () => {
    const { loopback, callback } = await openWaiting();
    const browser = fetch(callbackUrl(loopback.redirectUri));
    await callback;
    await loopback.close({ ok: true });
    const { pathname, search } = new URL((await browser).url);
    expect(pathname + search).toMatch(/^\/callback\?done=[\w-]{22}$/);
  });

  test("is waited for where the browser is still on its way to it", async () => {
    const { loopback, port, callback } = await openWaiting();
    const moved = await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    await callback;
    const closing = loopback.close({ ok: true });
    const path = /^location: (.*)$/im.exec(moved)?.[1] ?? "";
    expect(await raw(port, request(port, path))).toContain("You are logged in");
    await closing;
    expect(await isFree(port)).toBe(true);
  });

  test("is not waited for for ever", async () => {
    const { loopback, port, callback } = await openWaiting();
    await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    await callback;
    await withFastClock(20, () => loopback.close({ ok: true }));
    expect(await isFree(port)).toBe(true);
  });

  test("is at a path that is not there before the callback, nor under another name", async () => {
    const { port } = await openWaiting();
    expect(statusOf(await raw(port, request(port, "/callback?done=")))).toBe(400);
    await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    expect(statusOf(await raw(port, request(port, "/callback?done=aaaaaaaaaaaaaaaaaaaaaa")))).toBe(400);
  });

  test("and every other has the headers of a page that holds nothing", async () => {
    const { port } = await openWaiting();
    const answers = [
      await raw(port, request(port, "/callback?state=wrong")),
      await raw(port, request(port, "/nothing")),
      await raw(port, request(port, "/callback", ["Origin: https://evil.example"])),
      await raw(port, request(port, "/callback", [], "POST")),
      await raw(port, request(port, `/callback?code=c&state=${STATE}`)),
      await raw(port, request(port, `/callback?code=c&state=${STATE}`)),
    ];
    expect(answers.map(statusOf)).toEqual([400, 404, 403, 405, 303, 409]);
    for (const answer of answers) {
      const [head = "", body = ""] = answer.split("\r\n\r\n");
      const style = /<style>(.*?)<\/style>/s.exec(body)?.[1] ?? "";
      const hash = createHash("sha256").update(style).digest("base64");
      const headers = head.toLowerCase();
      expect(head).toContain(
        `default-src 'none'; style-src 'sha256-${hash}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`,
      );
      expect(headers).toContain("cache-control: no-store");
      expect(headers).toContain("referrer-policy: no-referrer");
      expect(headers).toContain("x-content-type-options: nosniff");
      expect(headers).toContain("connection: close");
      expect(body).not.toMatch(/<script|wrong|evil/);
      expect(style).toContain("prefers-color-scheme:dark");
    }
  });
});

describe("the end", () => {
  test("comes at once with the signal, and leaves the port to others", async () => {
    const { loopback, port, controller, callback } = await openWaiting();
    const browser = fetch(callbackUrl(loopback.redirectUri)).catch(() => "cut off");
    await callback;
    controller.abort();
    expect(await browser).toBe("cut off");
    await loopback.close(REFUSED);
    expect(await isFree(port)).toBe(true);
  });

  test("of waiting comes with the signal of the waiting, and with that of the listener", async () => {
    const { loopback, controller } = await openTest();
    const stop = new AbortController();
    const waiting = rejection(loopback.receive(STATE, stop.signal));
    stop.abort();
    expect(await waiting).toMatchObject({ code: "aborted" });
    const again = rejection(loopback.receive(STATE, new AbortController().signal));
    controller.abort();
    expect(await again).toMatchObject({ code: "aborted" });
  });

  test("was there before the beginning where the signal had fired", async () => {
    const before = openHandles();
    const { openLoopback } = await import("../../src/login/listen.js");
    expect(await rejection(openLoopback({ signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted" });
    expect(openHandles()).toBe(before);
  });

  test("may come while the port is bound", async () => {
    const before = openHandles();
    const { openLoopback } = await import("../../src/login/listen.js");
    const controller = new AbortController();
    const opening = rejection(openLoopback({ signal: controller.signal }));
    controller.abort();
    expect(await opening).toMatchObject({ code: "aborted" });
    await expect.poll(openHandles).toBeLessThanOrEqual(before);
  });

  test("of a login without a callback needs no waiting, and may come twice", async () => {
    const { loopback, port } = await openWaiting();
    await loopback.close(REFUSED);
    await loopback.close(REFUSED);
    expect(await isFree(port)).toBe(true);
  });

  test("of 200 logins, one after the other, leaves no sockets behind", async () => {
    const before = openHandles();
    for (let nth = 0; nth < 200; nth++) {
      const { loopback, port, callback } = await openWaiting();
      const moved = await raw(port, request(port, `/callback?code=${nth}&state=${STATE}`));
      expect((await callback).get("code")).toBe(String(nth));
      const page = raw(port, request(port, /^location: (.*)$/im.exec(moved)?.[1] ?? ""));
      await loopback.close({ ok: true });
      expect(await page).toContain("You are logged in");
    }
    await expect.poll(openHandles).toBeLessThanOrEqual(before);
  });
});

const portOf = (uri: string) => Number(new URL(uri).port);

describe("the port of a redirect address without a listener", () => {
  it("is one that the system assigns to no connection, and is free", async () => {
    for (let nth = 0; nth < 5; nth++) {
      const port = portOf(await reserveRedirect({}));
      expect(port).toBeGreaterThanOrEqual(15_000);
      expect(port).toBeLessThan(30_000);
      const server = createServer().listen(port, "127.0.0.1");
      await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("is that of the earlier registration where that is free, and the given one in any case", async () => {
    const preferred = await reserveRedirect({});
    expect(await reserveRedirect({ preferred })).toBe(preferred);
    const server = createServer().listen(portOf(preferred), "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    expect(await reserveRedirect({ preferred })).not.toBe(preferred);
    expect(portOf(await reserveRedirect({ redirectPort: portOf(preferred) }))).toBe(portOf(preferred));
    await new Promise((resolve) => server.close(resolve));
  });
});

describe("what no response object answers", () => {
  const END = "\r\ncontent-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n";

  it.each<[string, (port: number) => string, string]>([
    ["no HTTP", () => "no HTTP\r\n\r\n", "400 Bad Request"],
    [
      "headers of more than 16 KiB",
      (port) => request(port, "/", [`X-Filler: ${"a".repeat(16_384)}`]),
      "431 Request Header Fields Too Large",
    ],
    ["a request without an end", (port) => `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`, "408 Request Timeout"],
  ])("%s", async (_what, bytes, status) => {
    const { port } = await openWaiting({ requestTimeoutMs: 50 });
    expect(await raw(port, bytes(port))).toBe(`HTTP/1.1 ${status}${END}`);
  });

  it("but not headers of 15 KiB", async () => {
    const { port, callback } = await openWaiting();
    const target = `/callback?code=c&state=${STATE}`;
    expect(statusOf(await raw(port, request(port, target, [`X-Filler: ${"a".repeat(15_000)}`])))).toBe(303);
    expect((await callback).get("code")).toBe("c");
  });
});

describe("the plan of a redirect address", () => {
  test("without a wish is 127.0.0.1, /callback and any port", () => {
    expect(planRedirect({})).toEqual({ host: "127.0.0.1", path: "/callback", ports: [0] });
  });

  test("takes the earlier address where nothing is against it", () => {
    const preferred = "http://localhost:9000/back";
    const earlier = { host: "localhost", path: "/back", ports: [9000, 0] };
    expect(planRedirect({ preferred })).toEqual(earlier);
    expect(planRedirect({ preferred, redirectHost: "localhost", redirectPath: "/back" })).toEqual(earlier);
    expect(planRedirect({ preferred, redirectPort: 9000 })).toEqual({ ...earlier, ports: [9000] });
    expect(planRedirect({ preferred, redirectPort: 9001 })).toEqual({
      host: "127.0.0.1",
      path: "/callback",
      ports: [9001],
    });
    expect(planRedirect({ preferred, redirectHost: "127.0.0.1" })).toEqual({
      host: "127.0.0.1",
      path: "/callback",
      ports: [0],
    });
    expect(planRedirect({ preferred, redirectPath: "/x" })).toEqual({ host: "127.0.0.1", path: "/x", ports: [0] });
  });

  test("tries all ports of the metadata document, whichever host is given", () => {
    const [first = 0, ...others] = DOCUMENT_PORTS;
    const preferred = `http://127.0.0.1:${first}/callback`;
    const plan = { path: "/callback", ports: [first, ...others, 0] };
    expect(planRedirect({ preferred })).toEqual({ ...plan, host: "127.0.0.1" });
    expect(planRedirect({ preferred, redirectHost: "localhost" })).toEqual({ ...plan, host: "localhost" });
    expect(planRedirect({ preferred, redirectPort: 9000 })).toMatchObject({ ports: [9000] });
    expect(planRedirect({ preferred: `http://127.0.0.1:${first}/back` }).ports).toEqual([first, 0]);
  });

  test.each([
    "https://127.0.0.1:9000/callback",
    "http://evil.example:9000/callback",
    "http://127.0.0.2:9000/callback",
    "http://user@127.0.0.1:9000/callback",
    "http://127.0.0.1:9000/callback?x=1",
    "http://127.0.0.1:9000/callback#x",
    "http://127.0.0.1:9000/a/../callback",
    "http://127.0.0.1:9000/%63allback",
    "http://[::1]:9000/callback",
    "not an address",
  ])("does not take %s for an earlier one", (preferred) => {
    expect(planRedirect({ preferred })).toEqual({ host: "127.0.0.1", path: "/callback", ports: [0] });
  });

  test.each([0, -1, 65_536, 1.5, Number.NaN])("refuses the port %d", (port) => {
    const message = "the redirect port must be a whole number from 1 to 65535";
    expect(() => planRedirect({ redirectPort: port })).toThrow(new TypeError(message));
  });

  test.each(["", "callback", "/a?b", "/a#b", "/a b", "/../a", "/./a", "//a", "/%41", "/a\r\nb"])(
    "refuses the path %j",
    (path) => {
      const message = "the redirect path must begin with / and have only letters, digits and -._~/ in it";
      expect(() => planRedirect({ redirectPath: path })).toThrow(new TypeError(message));
    },
  );

  test.each([1, 65_535])("takes the port %i", (port) => {
    expect(planRedirect({ redirectPort: port }).ports).toEqual([port]);
  });

  test.each(["/", "/a", "/a/", "/a-b_c/d.e~f/0"])("takes the path %s", (path) => {
    expect(planRedirect({ redirectPath: path }).path).toBe(path);
  });

  test("takes the port of http for that of an earlier address without one", () => {
    const preferred = "http://127.0.0.1/callback";
    expect(planRedirect({ preferred })).toEqual({ host: "127.0.0.1", path: "/callback", ports: [80, 0] });
  });

  test.each<[string, object, object]>([
    ["http://127.0.0.1:8080/cb", {}, { host: "127.0.0.1", path: "/cb", ports: [8080] }],
    ["http://localhost/cb;v=1", {}, { host: "localhost", path: "/cb;v=1", ports: [80] }],
    ["http://127.0.0.1/cb", { redirectPort: 8080 }, { host: "127.0.0.1", path: "/cb", ports: [8080] }],
    ["https://dev.example", { redirectPort: 8080 }, { host: "localhost", path: "/", ports: [8080] }],
    [
      "https://dev.example/a/cb?x=1",
      { redirectPort: 8080, redirectHost: "127.0.0.1", redirectPath: "/cb", preferred: "http://localhost:1/x" },
      { host: "127.0.0.1", path: "/cb", ports: [8080] },
    ],
  ])("of the user's own %s with %j", (uri, options, plan) => {
    expect(planRedirect({ redirectUri: uri, ...options })).toEqual({ uri, ...plan });
  });

  test.each(["https://dev.example/cb", "https://localhost:8443/cb"])("misses the port to listen at for %s", (uri) => {
    const details = { code: "usage", remedy: expect.objectContaining({ option: "redirectPort" }) };
    expect(() => planRedirect({ redirectUri: uri })).toThrow(expect.objectContaining(details));
  });

  test.each([
    "dev.example/cb",
    "http://dev.example/cb",
    "javascript:alert(1)",
    "https://user@dev.example/cb",
    "https://dev.example/cb#x",
    "https://dev.example/c b",
    "https://dev.example/c\r\nb",
    "https://dév.example/cb",
  ])("refuses the user's own %j", (uri) => {
    expect(() => planRedirect({ redirectUri: uri, redirectPort: 8080 })).toThrow(TypeError);
  });

  test("is written as browsers write it", () => {
    expect(redirectUri({ host: "127.0.0.1", path: "/" }, 80)).toBe("http://127.0.0.1/");
    expect(redirectUri({ host: "localhost", path: "/callback" }, 8080)).toBe("http://localhost:8080/callback");
  });
});
