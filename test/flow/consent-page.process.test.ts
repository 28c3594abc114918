import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { CHROMIUM, startChromium, tabTo } from "../helpers/chromium.js";
import { until } from "../helpers/cli.js";
import { flowTest, loginUrl } from "./support.js";

const it = flowTest({ autoApprove: false })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("browser", async ({}, { onCleanup }) => {
    const browser = await startChromium();
    onCleanup(() => browser.context.close());
    return browser;
  })
  .extend("page", ({ browser }) => browser.context.newPage())
  .extend(
    "heading",
    ({ page }) =>
      () =>
        page.getByRole("heading", { level: 1 }).textContent(),
  )
  .extend("press", ({ page }) => async (name: string | RegExp) => {
    await tabTo(page, name);
    await page.keyboard.press("Enter");
  })
  .extend("beginLogin", ({ me, page }) => {
    /** `agentauth login`, with its address opened in the browser. */
    return async (...flags: string[]) => {
      const login = me.start(["login", me.url, "--browser", "none", ...flags]);
      await until(() => loginUrl(login.err()) !== undefined || login.child.exitCode !== null);
      await page.goto(loginUrl(login.err())?.href ?? "");
      return {
        output: login.err,
        ended: async () => login.child.exitCode ?? ((await once(login.child, "close"))[0] as number | null),
      };
    };
  });

describe.skipIf(CHROMIUM === undefined)("the pages in a real browser, by keyboard alone", () => {
  it("log alice in, ask for her consent, and return to the program", async ({
    beginLogin,
    heading,
    me,
    page,
    press,
    url,
  }) => {
    const { ended, output } = await beginLogin("--scope", "mcp reports:read");
    expect(await heading()).toBe("Log in");
    await press(/^Log in as Alice/);
    await page.getByRole("heading", { name: "Allow agentauth?" }).waitFor();
    const shown = await page.getByRole("main").textContent();
    for (const fact of ["Alice", url, "reports:read", "127.0.0.1:"]) expect(shown).toContain(fact);
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    expect(await ended()).toBe(0);
    expect(output()).toContain(`logged in at ${url}`);
    expect((await me.grant()).tokens.scope).toBe("mcp reports:read");
    expect(JSON.parse((await me.run(["mcp", "call", url, "whoami"])).stdout)).toMatchObject({ subject: "alice" });
  });

  it("leave no code in the address bar or in the history", async ({ beginLogin, browser, page, press }) => {
    const { ended } = await beginLogin();
    await press(/^Log in as Alice/);
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    expect(await ended()).toBe(0);
    const last = new URL(page.url());
    expect([last.pathname, last.search, last.hash]).toEqual([
      "/callback",
      expect.stringMatching(/^\?done=[\w-]+$/),
      "",
    ]);
    const session = await browser.context.newCDPSession(page);
    const { entries } = await session.send("Page.getNavigationHistory");
    expect(entries.filter(({ url }) => /[?&#]code=/.test(url))).toEqual([]);
  });

  it.for([
    ["Deny, after the login", [/^Log in as Alice/, "Deny"]],
    ["Cancel, before it", ["Cancel"]],
  ] as const)("accept a refusal: %s", async ([_name, names], { beginLogin, me, page, press }) => {
    const { ended, output } = await beginLogin();
    for (const name of names) await press(name);
    await page.getByRole("heading", { name: "The login failed" }).waitFor();
    expect(await ended()).toBe(4);
    expect(output()).toMatch(/^error: the login failed with "access_denied"/m);
    expect(await me.grants()).toEqual([]);
    expect(new URL(page.url()).search).toMatch(/^\?done=[\w-]+$/);
  });

  it("ask only for consent at a second login", async ({ beginLogin, heading, page, press }) => {
    const first = await beginLogin();
    await press(/^Log in as Bob/);
    await press("Allow");
    // The program may end before the browser shows its last page.
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    await first.ended();
    const second = await beginLogin("--scope", "mcp more");
    expect(await heading()).toBe("Allow agentauth?");
    await press("Allow");
    expect(await second.ended()).toBe(0);
  });

  it("cause no warning in the browser, and send it only to this machine", async ({
    beginLogin,
    browser,
    page,
    press,
  }) => {
    const { ended } = await beginLogin();
    await press(/^Log in as Alice/);
    await press("Allow");
    await page.getByRole("heading", { name: "You are logged in" }).waitFor();
    await ended();
    expect(browser.log.complaints).toEqual([]);
    expect([...new Set(browser.log.requested.map(({ hostname }) => hostname))]).toEqual(["127.0.0.1"]);
  });

  const pictures = process.env["AGENTAUTH_SCREENSHOTS"] === "1";
  it.runIf(pictures)("are photographed for the documentation", async ({ beginLogin, page, press }) => {
    const { ended } = await beginLogin("--scope", "mcp reports:read");
    await press(/^Log in as Alice/);
    await page.getByRole("heading", { name: "Allow agentauth?" }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const path = fileURLToPath(new URL(`../../docs/images/consent-${colorScheme}.png`, import.meta.url));
      await page.screenshot({ path, animations: "disabled" });
    }
    await press("Allow");
    await ended();
  });
});
