import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BrowserLog, CHROMIUM, startChromium, tabTo } from "../helpers/chromium.js";
import { until } from "../helpers/cli.js";
import { type Desk, type Newcomer, signInUrl, startDesk } from "./support.js";

describe.skipIf(CHROMIUM === undefined)("the pages in a real browser, by keyboard alone", () => {
  let desk: Desk;
  let me: Newcomer;
  let context: BrowserContext;
  let log: BrowserLog;
  let page: Page;

  beforeAll(async () => {
    desk = await startDesk({ autoApprove: false });
  });
  afterAll(() => desk.close());
  beforeEach(async () => {
    me = desk.newcomer();
    ({ context, log } = await startChromium());
    page = await context.newPage();
  });
  afterEach(() => context.close());

  /** `agentauth login`, with its address opened in the browser. */
  async function beginLogin(...flags: string[]) {
    const login = me.start(["login", desk.url, "--browser", "none", ...flags]);
    await until(() => signInUrl(login.err()) !== undefined || login.child.exitCode !== null);
    await page.goto(signInUrl(login.err())?.href ?? "");
    return {
      said: login.err,
      ended: async () => login.child.exitCode ?? ((await once(login.child, "close"))[0] as number | null),
    };
  }

  const heading = () => page.getByRole("heading", { level: 1 }).textContent();
  const press = async (name: string | RegExp) => {
    await tabTo(page, name);
    await page.keyboard.press("Enter");
  };

  it("sign alice in, ask for her consent, and lead back to the program", async () => {
    const { ended, said } = await beginLogin("--scope", "mcp reports:read");
    expect(await heading()).toBe("Log in");
    await press(/^Log in as Alice/);
    await page.getByRole("heading", { name: "Allow agentauth?" }).waitFor();
    const shown = await page.getByRole("main").textContent();
    for (const fact of ["Alice", desk.url, "reports:read", "127.0.0.1:"]) expect(shown).toContain(fact);
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    expect(await ended()).toBe(0);
    expect(said()).toContain(`logged in at ${desk.url}`);
    expect((await me.grant()).tokens.scope).toBe("mcp reports:read");
    expect(JSON.parse((await me.run(["mcp", "call", desk.url, "whoami"])).stdout)).toMatchObject({ subject: "alice" });
  });

  it("leave no code in the address bar, and nothing to go back to that has one", async () => {
    const { ended } = await beginLogin();
    await press(/^Log in as Alice/);
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    expect(await ended()).toBe(0);
    const last = new URL(page.url());
    expect([last.pathname.split("/")[1], last.search, last.hash]).toEqual(["done", "", ""]);
    const session = await context.newCDPSession(page);
    const { entries } = await session.send("Page.getNavigationHistory");
    expect(entries.filter(({ url }) => /[?&#]code=/.test(url))).toEqual([]);
  });

  it.each([
    ["Deny, after the login", [/^Log in as Alice/, "Deny"]],
    ["Cancel, before it", ["Cancel"]],
  ])("take a no: %s", async (_name, names) => {
    const { ended, said } = await beginLogin();
    for (const name of names) await press(name);
    await page.getByRole("heading", { name: "The login failed" }).waitFor();
    expect(await ended()).toBe(4);
    expect(said()).toMatch(/^error: the login failed with "access_denied"/m);
    expect(await me.grants()).toEqual([]);
    expect(new URL(page.url()).search).toBe("");
  });

  it("do not ask a second time who it is, only whether it may", async () => {
    const first = await beginLogin();
    await press(/^Log in as Bob/);
    await press("Allow");
    await first.ended();
    const second = await beginLogin("--scope", "mcp more");
    expect(await heading()).toBe("Allow agentauth?");
    await press("Allow");
    expect(await second.ended()).toBe(0);
  });

  it("give the browser nothing to complain of, and send it nowhere but to this machine", async () => {
    const { ended } = await beginLogin();
    await press(/^Log in as Alice/);
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    await ended();
    expect(log.complaints).toEqual([]);
    expect([...new Set(log.requested.map(({ hostname }) => hostname))]).toEqual(["127.0.0.1"]);
  });

  const pictures = process.env["AGENTAUTH_SCREENSHOTS"] === "1";
  it.runIf(pictures)("are photographed for the documentation", async () => {
    const picture = async (name: string) => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        const path = fileURLToPath(new URL(`../../docs/images/${name}-${colorScheme}.png`, import.meta.url));
        await page.screenshot({ path, animations: "disabled" });
      }
    };
    const { ended } = await beginLogin("--scope", "mcp reports:read");
    await picture("sign-in");
    await press(/^Log in as Alice/);
    await page.getByRole("heading", { name: "Allow agentauth?" }).waitFor();
    await picture("consent");
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    await picture("done");
    await ended();
  });
});
