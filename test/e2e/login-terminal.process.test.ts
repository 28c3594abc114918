import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { CHROMIUM, startChromium } from "../helpers/chromium.js";
import { temporaryFolder } from "../helpers/cli.js";
import { hasTerminal, startOnTerminal } from "./terminal-support.js";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ autoApprove: true, devices: 1 });
});
afterAll(() => sandbox.close());

const issuer = () => sandbox.authUrl(sandbox.ids.pool);

/** `agentauth login` with a browser that opens nothing, in a shell that compares the terminal's modes at the end. */
function startLogin(columns = 80, flags = ["--browser", "true"], env: Record<string, string> = {}) {
  const settings = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_AGENT: "0", COLUMNS: String(columns), ...env };
  const run = startOnTerminal(["login", sandbox.mcpUrl, ...flags], settings, (command) =>
    [
      `stty cols ${columns}`,
      "before=$(stty -g)",
      command,
      "code=$?",
      '[ "$before" = "$(stty -g)" ] && echo "the terminal is as before"',
      "exit $code",
    ].join("; "),
  );
  return {
    ...run,
    lines: () => run.out().replaceAll("\r\n", "\n").split("\n"),
    link: () => /^ {2}(http:\S+)\r$/m.exec(run.out())?.[1] ?? "",
  };
}

const RESTORED = "the terminal is as before";

describe.skipIf(!hasTerminal)("a login on a terminal", () => {
  it.each([
    [40, 7],
    [80, 4],
    [200, 4],
  ])("at %i columns takes %i lines and an unbroken link, and ends with it", async (columns, count) => {
    const run = startLogin(columns);
    await run.shows(/cancels\s+it\)/);
    const lines = run.lines().filter((line) => line !== "");
    expect(lines).toHaveLength(count);
    expect(lines.filter((line) => /^ {2}http:\/\/127\.0\.0\.1:\d+\/[\w-]{12}$/.test(line))).toHaveLength(1);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(Math.min(columns, 80));
    const page = await fetch(run.link());
    expect(await page.text()).toContain("<h1>You are logged in</h1>");
    expect(await run.ended).toBe(0);
    expect(run.lines().some((line) => line.startsWith("logged in at http"))).toBe(true);
    expect(run.out()).toContain(RESTORED);
  });

  it("shows the other ways when ? is pressed, and then takes a pasted address", async () => {
    const run = startLogin();
    await run.shows("Ctrl-C cancels");
    run.type("?");
    await run.shows("Never paste");
    const address = /^ {2}(http\S+response_type=code\S*)\r$/m.exec(run.out())?.[1] ?? "";
    expect(run.out()).toMatch(/\r\n {2}ssh -L \d+:127\.0\.0\.1:\d+ /);
    const callback = (await fetch(address, { redirect: "manual" })).headers.get("location") ?? "";
    run.type(`${callback}\r`);
    expect(await run.ended).toBe(0);
    expect(run.out()).not.toContain("not accepted");
    expect(run.out()).not.toContain(new URL(callback).searchParams.get("code"));
    expect(run.out()).toContain(RESTORED);
  });

  it.each<[string, string, number]>([
    ["Ctrl-C", "\u0003", 130],
    ["Ctrl-C after ?", "?\u0003", 130],
    ["Ctrl-C in the middle of a line", "http://127\u0003", 130],
  ])("restores the terminal after %s", async (_, keys, code) => {
    const run = startLogin();
    await run.shows("Ctrl-C cancels");
    for (const key of keys) run.type(key);
    expect(await run.ended).toBe(code);
    expect(run.out()).toContain(RESTORED);
  });

  it.each<[NodeJS.Signals, number]>([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ])("restores the terminal after %s", async (name, code) => {
    const run = startLogin();
    await run.shows("Ctrl-C cancels");
    run.signal(name);
    expect(await run.ended).toBe(code);
    expect(run.out()).toContain(RESTORED);
  });

  it("restores the terminal after a refusal, and when the time is up", async () => {
    const late = startLogin(80, ["--browser", "true", "--login-timeout", "1"]);
    expect(await late.ended).toBe(4);
    expect(late.out()).toContain(RESTORED);
    const denied = startLogin();
    await denied.shows("Ctrl-C cancels");
    const login = new URL((await fetch(denied.link(), { redirect: "manual" })).headers.get("location") ?? "");
    const callback = new URL(login.searchParams.get("redirect_uri") ?? "");
    callback.searchParams.set("state", login.searchParams.get("state") ?? "");
    callback.searchParams.set("iss", issuer());
    callback.searchParams.set("error", "access_denied");
    await fetch(callback);
    expect(await denied.ended).toBe(4);
    expect(denied.out()).toContain(RESTORED);
  });

  it("makes the link a hyperlink where the terminal has them", async () => {
    const run = startLogin(80, ["--browser", "true"], { VTE_VERSION: "7600" });
    await run.shows("Ctrl-C cancels");
    const out = run.out().replaceAll("\u001b", "ESC");
    const [, target, text] = /^ {2}ESC\]8;;(http:\S+)ESC\\(\S+)ESC\]8;;ESC\\\r$/m.exec(out) ?? [];
    expect([target, text]).toEqual([text, expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{12}$/)]);
    run.type("\u0003");
    expect(await run.ended).toBe(130);
  });
});

describe.skipIf(!hasTerminal || CHROMIUM === undefined)("the link of a login, in a real browser", () => {
  it("leads through the login to a page with the server, the issuer and the account", async () => {
    const { context, log } = await startChromium();
    try {
      const run = startLogin(80, ["--browser", "true", "--account-hint", "ada@example.com"]);
      await run.shows("Ctrl-C cancels");
      const page = await context.newPage();
      await page.goto(run.link());
      await page.getByRole("heading", { name: "You are logged in" }).waitFor();
      expect(await page.getByRole("definition").allTextContents()).toEqual([
        sandbox.mcpUrl,
        issuer(),
        "ada@example.com",
      ]);
      expect(new URL(page.url()).search).toMatch(/^\?done=[\w-]+$/);
      expect(await run.ended).toBe(0);
      expect(log.complaints).toEqual([]);
      expect(new Set(log.requested.map(({ hostname }) => hostname))).toEqual(new Set(["127.0.0.1"]));
      await page.setViewportSize({ width: 390, height: 700 });
      const isWide = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth");
      expect(isWide).toBe(false);
    } finally {
      await context.close();
    }
  });
});
