import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { detectEnvironment } from "../../src/login/platform.js";
import { type TerminalLoginOptions, terminalLogin } from "../../src/login/terminal.js";
import type { AuthorizePrompt } from "../../src/oauth/login/login-method.js";
import { withFastClock } from "../helpers/fast-clock.js";
import { freePort } from "../helpers/port.js";
import { rejection } from "../helpers/service.js";
import { callbackUrl, DENIED, isFree, openHandles, raw, request, STATE, statusOf } from "./support.js";
import { LOGIN_URL, login, portOf, RESOURCE } from "./terminal-support.js";

describe("a login at a terminal", () => {
  test("listens before anything is shown or opened", async () => {
    const { session, said } = await login({ openBrowser: () => Promise.reject(new Error("too early")) });
    expect(await isFree(portOf(session))).toBe(false);
    expect(said).toEqual([]);
  });

  test("shows the address first, then opens it, and takes the callback", async () => {
    const opened: string[] = [];
    const { session, said, authorize } = await login({
      browser: undefined,
      async openBrowser(url) {
        opened.push(url, said[0] ?? "");
        return "opened";
      },
    });
    const parameters = authorize();
    const browser = fetch(callbackUrl(session.redirectUri));
    expect((await parameters).get("code")).toBe("c0de-42");
    expect(opened[0]).toBe(LOGIN_URL);
    expect(opened[1]).toContain(LOGIN_URL);
    expect(said).toEqual([
      `To log in to https://mcp.example/mcp, open this address (at issuer.example):\n\n  ${LOGIN_URL}\n`,
      "Your browser should open now.",
      "Waiting for the login (5 minutes; Ctrl-C cancels it).",
    ]);
    await session.close({ ok: true });
    expect(await (await browser).text()).toContain("You are logged in");
    expect(await isFree(portOf(session))).toBe(true);
  });

  test("redirects a browser that requests its page after the user must log in again", async () => {
    const { session, text, authorize } = await login();
    const at = portOf(session);
    const first = authorize();
    const moved = await raw(at, request(at, `/callback?error=invalid_scope&state=${STATE}`));
    const page = /location: (\S+)/i.exec(moved)?.[1] ?? "";
    expect((await first).get("error")).toBe("invalid_scope");
    const second = authorize({ url: "https://issuer.example/again", state: "another-state" });
    expect(await raw(at, request(at, page))).toMatch(
      /^HTTP\/1.1 303 [\s\S]*location: https:\/\/issuer.example\/again/i,
    );
    expect(statusOf(await raw(at, request(at, `/callback?code=c&state=${STATE}`)))).toBe(400);
    expect(statusOf(await raw(at, request(at, "/callback?code=c&state=another-state")))).toBe(303);
    expect((await second).get("code")).toBe("c");
    expect(text().match(/To log in to/g)).toHaveLength(1);
  });

  test("shows the other address where the browser of the first callback does not come for its page", () =>
    withFastClock(10, async () => {
      const { session, text, authorize } = await login();
      const at = portOf(session);
      const first = authorize();
      await raw(at, request(at, `/callback?error=invalid_scope&state=${STATE}`));
      await first;
      const second = authorize({ url: "https://issuer.example/again", state: "another-state" });
      expect(text()).not.toContain("https://issuer.example/again");
      await expect.poll(text, { timeout: 10_000 }).toContain("https://issuer.example/again");
      await raw(at, request(at, "/callback?code=c&state=another-state"));
      expect((await second).get("code")).toBe("c");
    }));

  test.each(["sh -c 'exit 3'", "no-such-browser-at-all"])("continues where the browser %s fails", async (browser) => {
    const { session, text, authorize } = await login({ browser, env: process.env });
    const parameters = authorize();
    await expect.poll(text).toContain("No browser could be started: open the address yourself.");
    expect(text()).toContain(LOGIN_URL);
    await raw(portOf(session), request(portOf(session), `/callback?code=c&state=${STATE}`));
    expect((await parameters).get("code")).toBe("c");
  });

  test("continues where the opener breaks", async () => {
    const { text, authorize } = await login({ browser: "x", openBrowser: () => Promise.reject(new Error("boom")) });
    void authorize();
    await expect.poll(text).toContain("No browser could be started");
    expect(text()).not.toContain("boom");
  });

  test("shows the address in ASCII, rewritten and without anything that moves a terminal's cursor", async () => {
    const { text, authorize } = await login();
    void authorize({ url: "https://bücher.example/a'b?x=(y)" });
    await expect.poll(text).toContain("https://xn--bcher-kva.example/a%27b?x=%28y%29");
    expect(text()).toContain("(at xn--bcher-kva.example)");
  });

  test.each(["javascript:alert(1)", "http://issuer.example/", "https://a@b.example/", "https://a.example/\u202e"])(
    "never shows or opens %j",
    async (url) => {
      let opened = 0;
      const { said, authorize } = await login({
        browser: "x",
        openBrowser: async () => {
          opened++;
          return "opened";
        },
      });
      const message = expect.stringMatching(/^the login address .*(?:\(from "the authorization server"\)|user name)/);
      expect(await rejection(authorize({ url }))).toMatchObject({ code: "bad_address", class: "refused", message });
      expect([said, opened]).toEqual([[], 0]);
    },
  );

  test("reports once that something is probing the port, and continues", async () => {
    const { session, text, authorize } = await login();
    const port = portOf(session);
    const parameters = authorize();
    for (let nth = 0; nth < 60; nth++) await raw(port, request(port, "/callback?state=wrong"));
    expect(text().match(/is probing port/g)).toHaveLength(1);
    expect(text()).toContain(`port ${port}`);
    await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    expect((await parameters).get("code")).toBe("c");
  });

  test("uses the host, port and path that were asked for, or those of an earlier registration", async () => {
    const port = await freePort();
    const wished = await login({ redirectHost: "localhost", redirectPort: port, redirectPath: "/back" });
    expect(wished.session.redirectUri).toBe(`http://localhost:${port}/back`);
    expect(await rejection(login({ redirectPort: port }))).toMatchObject({ code: "usage", class: "usage" });
    const earlier = `http://127.0.0.1:${await freePort()}/callback`;
    expect((await login({}, earlier)).session.redirectUri).toBe(earlier);
  });

  test("says nothing of a browser that failed after the login", async () => {
    let fail = () => {};
    const { session, text, authorize } = await login({
      browser: "x",
      openBrowser: () => new Promise((resolve) => (fail = () => resolve("failed"))),
    });
    const parameters = authorize();
    await raw(portOf(session), request(portOf(session), `/callback?code=c&state=${STATE}`));
    await parameters;
    fail();
    await session.close({ ok: true });
    expect(text()).not.toContain("No browser could be started");
  });

  test.each([
    [{ loginTimeoutSeconds: 0 }, "loginTimeoutSeconds must be a number above 0"],
    [{ loginTimeoutSeconds: Number.NaN }, "loginTimeoutSeconds must be a number above 0"],
    [{ loginTimeoutSeconds: Number.POSITIVE_INFINITY }, "loginTimeoutSeconds must be a number above 0"],
    [{ redirectPort: 0 }, "the redirect port must be"],
    [{ redirectPath: "x" }, "the redirect path must"],
  ])("refuses %j from the start", (wrong, message) => {
    const make = () => terminalLogin({ say: () => {}, env: {}, ...wrong });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });

  test("has five minutes, or what it is given, and asks about endpoints where it can", async () => {
    const method = terminalLogin({ say: () => {}, env: {} });
    expect([method.loginTimeoutMs, method.confirmEndpoints]).toEqual([300_000, undefined]);
    const asked: unknown[] = [];
    const asking = terminalLogin({
      say: () => {},
      env: {},
      loginTimeoutSeconds: 1.5,
      confirm: async (...question) => {
        asked.push(...question);
        return true;
      },
    });
    const { signal } = new AbortController();
    const prompt = {
      resource: RESOURCE,
      issuer: "https://issuer.example",
      authorizationEndpoint: LOGIN_URL,
      tokenEndpoint: "https://other.example/token",
      signal,
    };
    expect([asking.loginTimeoutMs, await asking.confirmEndpoints?.(prompt)]).toEqual([1500, true]);
    expect(asked).toEqual([expect.stringMatching(/^The login for .*Continue\?$/s), signal]);
  });

  test.each([true, false])(
    "hands Ctrl-C on to those who listen for SIGINT, else ends the process: %s",
    async (listens) => {
      const input = Object.assign(new PassThrough(), { setRawMode: () => undefined });
      const emit = vi.spyOn(process, "emit").mockReturnValue(listens as never);
      const kill = vi.spyOn(process, "kill").mockReturnValue(true);
      onTestFinished(() => {
        emit.mockRestore();
        kill.mockRestore();
      });
      const { authorize } = await login({ input, flow: "paste" });
      void authorize();
      input.write("\x03");
      await expect.poll(() => emit.mock.calls).toContainEqual(["SIGINT", "SIGINT"]);
      expect(kill.mock.calls).toEqual(listens ? [] : [[process.pid, "SIGINT"]]);
    },
  );

  test("refuses a browser command without its last quote from the start", () => {
    expect(() => terminalLogin({ say: () => {}, env: {}, browser: "'x" })).toThrow(AgentAuthError);
  });
});

describe("a browser", () => {
  async function isOpened(options: Partial<TerminalLoginOptions>): Promise<boolean> {
    let opened = false;
    const { authorize } = await login({
      browser: undefined,
      ...options,
      openBrowser: async () => {
        opened = true;
        return "opened";
      },
    });
    void authorize();
    return opened;
  }
  const ssh = detectEnvironment({ env: { SSH_TTY: "x", DISPLAY: ":0" }, exists: () => false, platform: "linux" });

  test("opens by default only where the user would see it", async () => {
    expect(await isOpened({})).toBe(true);
    expect(await isOpened({ environment: ssh })).toBe(false);
    expect(await isOpened({ flow: "paste", input: new PassThrough() })).toBe(false);
  });

  test("opens elsewhere where it was asked for, and nowhere where none was", async () => {
    expect(await isOpened({ environment: ssh, browser: "firefox" })).toBe(true);
    expect(await isOpened({ environment: ssh, env: { BROWSER: "firefox" } })).toBe(true);
    for (const BROWSER of ["", "  "]) expect(await isOpened({ environment: ssh, env: { BROWSER } })).toBe(false);
    expect(await isOpened({ browser: "none", env: { BROWSER: "firefox" } })).toBe(false);
    expect(await isOpened({ env: { BROWSER: "none" } })).toBe(false);
  });

  test.each([
    ["the command that was given", { browser: "firefox" }, "firefox"],
    ["that of the environment", { browser: undefined }, "opera"],
  ])("is %s, with the environment", async (_what, options, command) => {
    const env = { BROWSER: "opera" };
    const opened: unknown[] = [];
    const { authorize } = await login({
      env,
      ...options,
      openBrowser: async (url, given) => {
        opened.push(url, given);
        return "opened";
      },
    });
    void authorize();
    expect(opened).toEqual([LOGIN_URL, { command, env, signal: expect.any(AbortSignal) }]);
  });

  test("over SSH needs the port, and the exact command for it is shown", async () => {
    const env = { SSH_CONNECTION: "192.0.2.7 50000 198.51.100.9 22", USER: "ada" };
    const environment = detectEnvironment({ env, exists: () => false, platform: "linux" });
    const { session, text, authorize } = await login({ environment });
    void authorize();
    const port = portOf(session);
    await expect.poll(text).toContain(`ssh -L ${port}:127.0.0.1:${port} ada@198.51.100.9`);
    const pasting = await login({ environment, flow: "paste", input: new PassThrough() });
    void pasting.authorize();
    expect(pasting.text()).toMatch(/Waiting for the login/);
    expect(pasting.text()).not.toMatch(/SSH|ssh/);
  });
});

describe("a pasted address", () => {
  test("races with the listener and may win", async () => {
    const input = new PassThrough();
    const { session, text, authorize } = await login({ input });
    const parameters = authorize();
    expect(text()).toContain("Never paste that address anywhere else");
    input.write(`${session.redirectUri}?code=x&state=wrong\n`);
    await expect.poll(text).toContain("state mismatch");
    input.write(`${callbackUrl(session.redirectUri)}\n`);
    expect((await parameters).get("code")).toBe("c0de-42");
    expect(text()).not.toContain("c0de-42");
    await session.close({ ok: true });
    expect(await isFree(portOf(session))).toBe(true);
  });

  test("races with the listener and may lose; the input is given back", async () => {
    const input = new PassThrough();
    const { session, authorize } = await login({ input });
    const parameters = authorize();
    const port = portOf(session);
    await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    expect((await parameters).get("code")).toBe("c");
    await expect.poll(() => [input.isPaused(), input.listenerCount("data")]).toEqual([true, 0]);
  });

  test("that never comes, since the input ended, leaves it to the listener", async () => {
    const input = new PassThrough();
    const { session, authorize } = await login({ input });
    const parameters = authorize();
    input.end();
    const port = portOf(session);
    await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    expect((await parameters).get("code")).toBe("c");
  });

  test("is all there is with --flow paste: nothing listens", async () => {
    const input = new PassThrough();
    const before = openHandles();
    const { session, text, authorize } = await login({ flow: "paste", input });
    expect(session.redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect(await isFree(portOf(session))).toBe(true);
    await expect.poll(openHandles).toBeLessThanOrEqual(before);
    const parameters = authorize({ allowBareCode: true });
    expect(text()).toContain("where nothing answers: that is expected");
    input.write("4/0Ab_bare-code-of-32\n");
    expect(Object.fromEntries(await parameters)).toEqual({ code: "4/0Ab_bare-code-of-32", state: STATE });
    await session.close({ ok: true });
  });

  test("with --flow paste keeps to the port that was asked for, or that of an earlier registration", async () => {
    const input = new PassThrough();
    const wished = await login({ flow: "paste", input, redirectPort: 8085, redirectHost: "localhost" });
    expect(wished.session.redirectUri).toBe("http://localhost:8085/callback");
    const earlier = `http://127.0.0.1:${await freePort()}/callback`;
    expect((await login({ flow: "paste", input }, earlier)).session.redirectUri).toBe(earlier);
  });

  test("with --flow paste and no input, or an input that ends, fails with `login_required`", async () => {
    const { authorize } = await login({ flow: "paste" });
    expect(await rejection(authorize())).toMatchObject({
      code: "login_required",
      class: "auth",
      message: "there is no terminal to paste the redirect address into",
    });
    const input = new PassThrough();
    const ending = await login({ flow: "paste", input });
    const ended = rejection(ending.authorize());
    input.end();
    expect(await ended).toMatchObject({ code: "login_required", class: "auth" });
  });
});

describe("the end without a callback", () => {
  test.each(["browser", "paste"] as const)("comes with the timeout: %s", async (flow) => {
    const input = new PassThrough();
    const { session, authorize } = await login({ flow, input, loginTimeoutSeconds: 0.05 });
    const error = await rejection(authorize());
    expect(error).toMatchObject({ code: "timeout", class: "auth", retryable: false });
    expect((error as AgentAuthError).remedy).toEqual({
      action: "login",
      server: "https://mcp.example/mcp",
      option: "loginTimeoutMs",
    });
    expect(input.isPaused()).toBe(true);
    await session.close({ ok: false, error: error as AgentAuthError });
    expect(await isFree(portOf(session))).toBe(true);
  });

  test.each(["browser", "paste"] as const)("comes with either signal and leaves no listener: %s", async (flow) => {
    const input = new PassThrough();
    const first = await login({ flow, input });
    const waiting = rejection(first.authorize());
    first.controller.abort();
    expect(await waiting).toMatchObject({ code: "aborted" });
    await first.session.close({ ok: false, error: DENIED });
    expect(await isFree(portOf(first.session))).toBe(true);
    expect(await rejection(first.authorize())).toMatchObject({ code: "aborted" });

    const second = await login({ flow, input });
    const stop = new AbortController();
    const stopped = rejection(second.authorize({ signal: stop.signal }));
    stop.abort();
    expect(await stopped).toMatchObject({ code: "aborted" });
    const before = second.said.length;
    expect(await rejection(second.authorize({ signal: stop.signal }))).toMatchObject({ code: "aborted" });
    expect(second.said).toHaveLength(before);
    await second.session.close({ ok: false, error: DENIED });
    expect(await isFree(portOf(second.session))).toBe(true);
    expect(input.listenerCount("data")).toBe(0);
  });

  test.each([true, false])("comes after what to do at a page of an approval, where one is forced: %s", async (is) => {
    const { text, authorize } = await login({ loginTimeoutSeconds: 0.1 });
    await rejection(authorize({ forcesConsent: is }));
    expect(text().includes('log in with authorizationParams: { prompt: "" }')).toBe(is);
  });

  test("was there before the beginning where the signal had fired", async () => {
    const method = terminalLogin({ say: () => {}, env: {} });
    const opening = method.open({ resource: RESOURCE, issuer: "https://issuer.example", signal: AbortSignal.abort() });
    expect(await rejection(opening)).toMatchObject({ code: "aborted" });
  });
});

describe("a login whose code goes to another host than the user", () => {
  const announced = async (prompt: Partial<AuthorizePrompt>) => {
    const { text, authorize, controller } = await login();
    void authorize(prompt);
    controller.abort();
    return text();
  };
  const tokenEndpoint = "https://tokens.example:8443/token";

  test("names that host before anything is opened, with a warning where nothing proves that the two belong together", async () => {
    const text = await announced({ tokenEndpoint, promisesIss: false });
    expect(text).toContain("warning: The login at issuer.example is handed to tokens.example:8443");
    expect(text).toContain("\nsameOriginEndpoints refuses such servers.");
  });

  test("names that host without a warning where the callback names its issuer", async () => {
    const text = await announced({ tokenEndpoint, promisesIss: true });
    expect(text).toContain("The login at issuer.example is handed to tokens.example:8443");
    expect(text).not.toContain("warning");
  });

  test("is not mentioned where it is the same origin, or unknown", async () => {
    for (const prompt of [{ tokenEndpoint: "https://issuer.example/token" }, {}]) {
      expect(await announced({ ...prompt, promisesIss: false })).not.toContain("handed to");
    }
  });
});

describe("a device code", () => {
  async function shown(changes: Record<string, string | undefined> = {}): Promise<string> {
    const said: string[] = [];
    const method = terminalLogin({ say: (text) => said.push(text), env: {} });
    await method.showDeviceCode?.({
      verificationUri: "https://issuer.example/device",
      verificationUriComplete: undefined,
      userCode: "WDJB-MJHT",
      expiresInSeconds: 900,
      ...changes,
    });
    return said.join("\n");
  }

  test("is shown with the address to type it at", async () => {
    const text = await shown({ verificationUriComplete: "https://issuer.example/device?user_code=WDJB-MJHT" });
    expect(text).toMatch(/at issuer\.example.*\n {2}https:\/\/issuer\.example\/device\n.*\n {2}WDJB-MJHT\n/s);
    expect(text).toContain("\n  https://issuer.example/device?user_code=WDJB-MJHT\n");
    expect(text).toContain("Waiting for the login (15 minutes");
  });

  test.each([
    [
      { verificationUri: "javascript:alert(1)" },
      "bad_address",
      'verification_uri "javascript:alert(1)" (from "the device authorization answer") must be an https address',
    ],
    [
      { verificationUri: "http://issuer.example/device" },
      "bad_address",
      'verification_uri "http://issuer.example/device" (from "the device authorization answer") must be an https address',
    ],
    [
      { verificationUriComplete: "https://a@evil.example/" },
      "bad_address",
      "verification_uri_complete must not contain a user name or password",
    ],
    [
      { verificationUriComplete: "smb://evil.example/" },
      "bad_address",
      'verification_uri_complete "smb://evil.example/" (from "the device authorization answer") must be an https address',
    ],
    [{ userCode: "" }, "bad_code", 'user_code "" cannot be displayed'],
    [{ userCode: "AB\u001b[2J" }, "bad_code", 'user_code "AB\\e[2J" cannot be displayed'],
    [{ userCode: "A".repeat(101) }, "bad_code", `user_code "${"A".repeat(101)}" cannot be displayed`],
  ])("is not shown where it is %j", async (changes, code, message) => {
    expect(await rejection(shown(changes))).toMatchObject({ code, class: "refused", message });
  });

  test("of 100 characters is shown", async () => {
    expect(await shown({ userCode: "A".repeat(100) })).toContain(`\n  ${"A".repeat(100)}\n`);
  });
});
