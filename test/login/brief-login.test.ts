import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { detectEnvironment } from "../../src/login/platform.js";
import type { TerminalLoginOptions } from "../../src/login/terminal.js";
import { callbackUrl, raw, request, STATE, statusOf } from "./support.js";
import { LOGIN_URL, login, portOf } from "./terminal-support.js";

/** A terminal that a user types at. */
function terminal() {
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), { setRawMode: (isRaw: boolean) => modes.push(isRaw) });
  return { input, modes };
}

async function briefLogin(options: Partial<TerminalLoginOptions> = {}) {
  const links: string[] = [];
  const { input, modes } = terminal();
  const display = { link: (url: string) => void links.push(url), qrCode: async () => false };
  const opened = await login({ input, display, ...options });
  return { ...opened, input, modes, links, linkPath: () => new URL(links.at(-1) ?? "http://none").pathname };
}

const remote = (env: Record<string, string>, container = false) =>
  detectEnvironment({ env, exists: () => container, platform: "linux" });

describe("a login on a terminal that shows links", () => {
  test("takes three lines and the link, without the long address", async () => {
    const { said, links, authorize, session } = await briefLogin();
    void authorize();
    expect(said).toEqual([
      "Log in to https://mcp.example/mcp at issuer.example",
      "Open this link in a browser on this computer:",
      "Waiting for the login (5 minutes; ? shows other ways, Ctrl-C cancels it).",
    ]);
    expect(links).toHaveLength(1);
    const answer = await raw(portOf(session), request(portOf(session), new URL(links[0] ?? "").pathname));
    expect(answer).toContain(`location: ${LOGIN_URL}\r\n`);
  });

  test("opens the browser at the login page itself", async () => {
    const opened: string[] = [];
    const { said, authorize } = await briefLogin({
      browser: undefined,
      openBrowser: async (url) => {
        opened.push(url);
        return "opened";
      },
    });
    void authorize();
    expect(opened).toEqual([LOGIN_URL]);
    expect(said[1]).toBe("Your browser should open now. If it does not, open this link:");
  });

  test("warns before the link that the code goes to another host", async () => {
    const { said, authorize } = await briefLogin();
    void authorize({ tokenEndpoint: "https://tokens.example/token", promisesIss: false });
    expect(said[1]).toContain("warning: The login at issuer.example is handed to tokens.example");
  });

  test("shows the long address, the forwarded port and the other flows when ? is pressed, and again", async () => {
    const { said, text, input, authorize, session } = await briefLogin();
    void authorize({ hasDeviceFlow: true });
    input.write("?");
    await expect.poll(() => said.length).toBe(4);
    const port = portOf(session);
    expect(said[3]).toContain(`\n  ${LOGIN_URL}\n`);
    expect(said[3]).toContain(`\n  ssh -L ${port}:127.0.0.1:${port} <user@host>\n`);
    expect(said[3]).toContain("Never paste that address anywhere else");
    expect(said[3]).toContain('flow: "device"');
    input.write("?");
    await expect.poll(() => said.length).toBe(5);
    expect(text()).not.toContain("not accepted");
  });

  test("takes an address that is pasted after ?, and one that is typed letter by letter with ? in it", async () => {
    for (const isTyped of [false, true]) {
      const { said, input, modes, authorize, session } = await briefLogin();
      const parameters = authorize();
      input.write("?");
      await expect.poll(() => said.length).toBe(4);
      const line = `${callbackUrl(session.redirectUri)}\r`;
      for (const piece of isTyped ? line : [line]) input.write(piece);
      expect((await parameters).get("code")).toBe("c0de-42");
      expect(said).toHaveLength(4);
      expect(modes.at(-1)).toBe(false);
    }
  });

  test("takes a pasted part that begins with ? for what it is", async () => {
    const { said, input, authorize } = await briefLogin();
    void authorize();
    input.write(`?code=c&state=${STATE}`);
    input.write("\r");
    await expect.poll(() => said.length).toBe(4);
    expect(said[3]).toContain("it is only a part of the address");
  });

  test("takes a line of ? where the terminal sends whole lines", async () => {
    const { said, input, authorize } = await briefLogin();
    void authorize();
    input.write("?\r");
    await expect.poll(() => said.length).toBe(4);
    expect(said[3]).toContain(LOGIN_URL);
  });

  test.each(["success", "signal", "timeout"])("restores the terminal: %s", async (end) => {
    const { input, modes, authorize, session, controller } = await briefLogin(
      end === "timeout" ? { loginTimeoutSeconds: 0.1 } : {},
    );
    const parameters = authorize();
    expect(modes).toEqual([true]);
    const port = portOf(session);
    if (end === "success") await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    if (end === "signal") controller.abort();
    await parameters.catch(() => undefined);
    expect(modes).toEqual([true, false]);
    await expect.poll(() => input.isPaused()).toBe(true);
    // The one that is left decodes keys for the next reader, and holds nothing open.
    expect(input.listenerCount("data")).toBeLessThanOrEqual(1);
  });

  test("shows the long address where something searches for the link, and continues", async () => {
    const { said, linkPath, authorize, session } = await briefLogin();
    const parameters = authorize();
    const port = portOf(session);
    for (let nth = 0; nth < 60; nth++) await raw(port, request(port, `/${nth}`));
    expect(said.slice(3)).toEqual([expect.stringContaining(`is probing port ${port}`)]);
    expect(said[3]).toContain(`\n  ${LOGIN_URL}\n`);
    expect(statusOf(await raw(port, request(port, linkPath())))).toBe(404);
    await raw(port, request(port, `/callback?code=c&state=${STATE}`));
    expect((await parameters).get("code")).toBe("c");
  });

  test("leads the link to the second request of a login", async () => {
    const { linkPath, authorize, session } = await briefLogin();
    const port = portOf(session);
    const first = authorize();
    const moved = await raw(port, request(port, `/callback?error=invalid_scope&state=${STATE}`));
    await first;
    const second = authorize({ url: "https://issuer.example/again", state: "another-state" });
    await raw(port, request(port, /location: (\S+)/i.exec(moved)?.[1] ?? ""));
    expect(await raw(port, request(port, linkPath()))).toContain("location: https://issuer.example/again\r\n");
    await raw(port, request(port, "/callback?code=c&state=another-state"));
    expect((await second).get("code")).toBe("c");
  });
});

describe("everything is printed at once", () => {
  const plain = new PassThrough();
  test.each<[string, Partial<TerminalLoginOptions>]>([
    ["without a display", { display: undefined }],
    ["without an input", { input: undefined }],
    ["where lines come from a pipe", { input: plain }],
    ["over SSH", { environment: remote({ SSH_TTY: "x", DISPLAY: ":0" }) }],
    ["in a container", { environment: remote({ DISPLAY: ":0" }, true) }],
    ["without a display for a browser", { environment: remote({}) }],
    ["in CI", { environment: remote({ CI: "1", DISPLAY: ":0" }) }],
    ["with the flow paste", { flow: "paste" }],
  ])("%s", async (_, options) => {
    const { text, links, authorize } = await briefLogin(options);
    void authorize();
    expect(text()).toContain(`\n  ${LOGIN_URL}\n`);
    expect(links).toEqual([]);
    const isHidden = !("input" in options);
    expect(text().includes("paste it here (it is not shown) and press Enter")).toBe(isHidden);
  });

  test("but not where a browser was named: it runs where the link works", async () => {
    const openBrowser = async () => "opened" as const;
    const { text, links, authorize } = await briefLogin({
      environment: remote({ SSH_TTY: "x" }, true),
      browser: "firefox",
      openBrowser,
    });
    void authorize();
    expect([links.length, text().includes(LOGIN_URL)]).toEqual([1, false]);
  });

  test("where that browser cannot be started, after the link", async () => {
    const { text, links, authorize } = await briefLogin({
      environment: remote({ SSH_TTY: "x" }),
      browser: "firefox",
      openBrowser: async () => "failed",
    });
    void authorize();
    await expect.poll(text).toContain(LOGIN_URL);
    expect([links.length, text().includes("You are connected by SSH")]).toEqual([1, true]);
  });

  test.each([
    ["in a container, after the link", remote({ DISPLAY: ":0" }, true), true],
    ["on a desktop not, where the link can be opened by hand", remote({ DISPLAY: ":0" }), false],
  ])("where that browser cannot be started: %s", async (_where, environment, isShown) => {
    const { text, authorize } = await briefLogin({
      environment,
      browser: "firefox",
      openBrowser: async () => "failed",
    });
    void authorize();
    await expect.poll(text).toContain("No browser could be started: open the address yourself.");
    expect(text().includes(LOGIN_URL)).toBe(isShown);
  });
});

describe("a device code", () => {
  const prompt = {
    verificationUri: "https://issuer.example/device",
    verificationUriComplete: "https://issuer.example/device?user_code=WDJB-MJHT",
    userCode: "WDJB-MJHT",
    expiresInSeconds: 900,
  };

  async function shown(isDrawn: boolean, changes: { verificationUriComplete?: undefined } = {}) {
    const { terminalLogin } = await import("../../src/login/terminal.js");
    const seen: string[] = [];
    const display = {
      link: () => undefined,
      qrCode: async (text: string) => {
        seen.push(`QR ${text}`);
        return isDrawn;
      },
    };
    await terminalLogin({ say: (text) => seen.push(text), env: {}, display }).showDeviceCode?.({
      ...prompt,
      ...changes,
    });
    return seen;
  }

  test("is a QR code of the address that contains it, with the code to compare", async () => {
    const seen = await shown(true);
    expect(seen[0]).toContain("\n  WDJB-MJHT\n");
    expect(seen.slice(1)).toEqual([
      `QR ${prompt.verificationUriComplete}`,
      "Scanned, it opens a page with the code: compare it.",
      "Waiting for the login (15 minutes; Ctrl-C cancels it).",
    ]);
  });

  test("is a QR code of the address to type it at where the issuer returned no other", async () => {
    expect((await shown(true, { verificationUriComplete: undefined })).slice(1, 3)).toEqual([
      `QR ${prompt.verificationUri}`,
      "Scanned, it opens that address.",
    ]);
  });

  test("comes with the whole address where no QR code can be drawn", async () => {
    expect((await shown(false))[2]).toContain(`\n  ${prompt.verificationUriComplete}\n`);
  });
});
