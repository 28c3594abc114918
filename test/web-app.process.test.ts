import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { BrowserContext } from "playwright-core";
import { it as base, describe, expect } from "vitest";
import { startSandbox } from "../src/sandbox/sandbox.js";
import { fileStore } from "../src/store/file/file.js";
import { CHROMIUM, startChromium } from "./helpers/chromium.js";
import { temporaryFolder } from "./helpers/folder.js";
import { freePort } from "./helpers/port.js";

// The two processes have one host and two ports, and cookies belong to a host: they are one app behind one address, whose
// load balancer is the test.
const it = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("sandbox", async ({}, { onCleanup }) => {
    const sandbox = await startSandbox({ devices: 0, autoApprove: "alice" });
    onCleanup(() => sandbox.close());
    return sandbox;
  })
  .extend("app", async ({ sandbox }, { onCleanup }) => {
    const [first, second] = [await freePort(), await freePort()];
    const store = join(temporaryFolder(), "logins");
    const file = await bundle();
    const env = { MCP_URL: sandbox.mcpUrl, STORE: store, SESSION_SECRET: "s".repeat(32), PATH: process.env["PATH"] };
    const children = await Promise.all(
      // Both name the second one as the address of the callback.
      [first, second].map((port) => start(file, { ...env, ORIGIN: `http://127.0.0.1:${second}`, PORT: `${port}` })),
    );
    onCleanup(async () => {
      for (const child of children) {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
    });
    return { first: `http://127.0.0.1:${first}`, second: `http://127.0.0.1:${second}`, store: fileStore(store) };
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("browser", async ({}, { onCleanup }) => {
    const { context } = await startChromium();
    onCleanup(() => context.close());
    return context;
  });

describe.skipIf(CHROMIUM === undefined)("the example of a web app in a real browser", () => {
  it("starts a login in one process, finishes it in another, and refuses the callback again", async ({
    app,
    browser,
    sandbox,
  }) => {
    const page = await loggedIn(browser, app.first, "alice");
    const callbacks: string[] = [];
    page.on("request", (request) => {
      if (request.url().startsWith(`${app.second}/oauth/callback`)) callbacks.push(request.url());
    });
    expect(await page.locator("#state").textContent()).toContain("alice is not connected.");
    await page.getByRole("link", { name: "Connect" }).click();
    await page.getByText("alice is connected.").waitFor();
    expect(page.url()).toBe(`${app.second}/`);
    expect((await app.store.list()).map(({ profile, server }) => [profile, server])).toEqual([
      ["alice", sandbox.mcpUrl],
    ]);
    const [callback = ""] = callbacks;
    for (const origin of [app.second, app.first]) {
      const replayed = await page.goto(callback.replace(app.second, origin));
      expect([replayed?.status(), await page.locator("body").textContent()]).toEqual([
        400,
        expect.stringMatching(/^The login failed: browser_mismatch\s*$/),
      ]);
    }
    expect(tokenRequests(sandbox)).toBe(1);
    // The login itself still works in both processes.
    await page.goto(app.first);
    await page.getByText("alice is connected.").waitFor();
  });

  it("refuses a callback that is replayed with its cookie, in either process", async ({ app, browser, sandbox }) => {
    const { page, callback } = await heldCallback(browser, app);
    const cookies = await browser.cookies(app.first);
    expect((await page.goto(callback))?.url()).toBe(`${app.second}/`);
    for (const origin of [app.second, app.first]) {
      await browser.addCookies(cookies);
      await page.goto(callback.replace(app.second, origin));
      expect(await page.locator("body").textContent()).toContain("The login failed: login_not_found");
    }
    expect(tokenRequests(sandbox)).toBe(1);
  });

  it("refuses a callback with a swapped cookie, and a foreign state", async ({ app, browser, sandbox }) => {
    const { page, callback } = await heldCallback(browser, app);
    const { context: victim } = await startChromium();
    try {
      const other = await loggedIn(victim, app.first, "bob");
      await other.goto(callback);
      expect(await other.locator("body").textContent()).toContain("The login failed: browser_mismatch");
      // The cookie of the victim's own login, under the name of that of the attacker.
      const own = await heldCallback(victim, app, "bob");
      const nameOf = async (context: BrowserContext) =>
        (await context.cookies(app.first)).find(({ name }) => name.startsWith("__Host-"));
      const [mine, theirs] = [await nameOf(browser), await nameOf(victim)];
      if (mine === undefined || theirs === undefined) throw new Error("no cookie of a login");
      expect(mine).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax", path: "/" });
      await victim.addCookies([{ ...theirs, name: mine.name }]);
      await own.page.goto(callback);
      expect(await own.page.locator("body").textContent()).toContain("The login failed: login_not_found");
    } finally {
      await victim.close();
    }
    const foreign = new URL(callback);
    foreign.searchParams.set("state", "foreign");
    await page.goto(foreign.href);
    expect(await page.locator("body").textContent()).toContain("The login failed: browser_mismatch");
    expect(tokenRequests(sandbox)).toBe(0);
    // None of this disturbed the login.
    await page.goto(callback);
    await page.getByText("alice is connected.").waitFor();
    expect((await app.store.list()).map(({ profile }) => profile)).toEqual(["alice"]);
  });
});

interface App {
  first: string;
  second: string;
}

/** A page of the app with the session of a user. */
async function loggedIn(browser: BrowserContext, origin: string, user: string) {
  const page = await browser.newPage();
  await page.goto(`${origin}/session/${user}`);
  return page;
}

/** A login whose callback the browser has not sent yet. */
async function heldCallback(browser: BrowserContext, { first, second }: App, user = "alice") {
  const page = await loggedIn(browser, first, user);
  // The browser gets the cookie of the login, and is not redirected.
  const started = new Promise<string>((resolve) => {
    void page.route(`${first}/oauth/start?**`, async (route) => {
      // Playwright sends the request in place of the browser, which adds this header itself.
      const headers = { ...route.request().headers(), "sec-fetch-site": "same-origin" };
      const response = await route.fetch({ maxRedirects: 0, headers });
      resolve(response.headers()["location"] ?? "");
      await route.fulfill({ status: 200, contentType: "text/plain", body: "held" });
    });
  });
  await page.getByRole("link", { name: "Connect" }).click();
  let callback = await started;
  while (!callback.startsWith(`${second}/oauth/callback`)) {
    const response = await fetch(callback, { redirect: "manual" });
    callback = new URL(response.headers.get("location") ?? "", callback).href;
  }
  return { page, callback };
}

function tokenRequests(sandbox: Awaited<ReturnType<typeof startSandbox>>): number {
  return sandbox.requests.filter(({ operation }) => operation === "authorization_code").length;
}

async function bundle(): Promise<string> {
  const outfile = join(temporaryFolder(), "server.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("../examples/web-app/server.ts", import.meta.url))],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.19",
    // Express is no ES module.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
  });
  return outfile;
}

async function start(file: string, env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "ignore"] });
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => Promise.reject(new Error("the example did not start"))),
  ]);
  return child;
}
