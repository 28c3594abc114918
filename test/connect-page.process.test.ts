import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { it as base, describe, expect } from "vitest";
import { startSandbox } from "../src/sandbox/sandbox.js";
import { fileStore } from "../src/store/file/file.js";
import { CHROMIUM, startChromium, tabTo } from "./helpers/chromium.js";
import { compileExample } from "./helpers/example.js";
import { temporaryFolder } from "./helpers/folder.js";
import { freePort } from "./helpers/port.js";

/** A phone. */
const VIEWPORT = { width: 390, height: 844 };
const pictures = fileURLToPath(new URL("../coverage/connect-page/", import.meta.url));

const it = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("sandboxes", async ({}, { onCleanup }) => {
    const sandboxes = [
      await startSandbox({ devices: 0, autoApprove: "alice" }),
      await startSandbox({ devices: 0, autoApprove: "alice" }),
    ];
    onCleanup(async () => {
      for (const sandbox of sandboxes) await sandbox.close();
    });
    return sandboxes;
  })
  .extend("app", async ({ sandboxes }, { onCleanup }) => {
    const origin = `http://127.0.0.1:${await freePort()}`;
    const store = join(temporaryFolder(), "logins");
    const servers = sandboxes.map(({ mcpUrl }) => mcpUrl);
    const env = { ORIGIN: origin, MCP_SERVERS: servers.join(" "), STORE: store, SESSION_SECRET: "s".repeat(32) };
    const child = await start(await compileExample("connect-page/server.ts"), { ...env, PATH: process.env["PATH"] });
    onCleanup(async () => {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    });
    return { origin, servers, child, store: fileStore(store) };
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("browser", async ({}, { onCleanup }) => {
    const browser = await startChromium();
    onCleanup(() => browser.context.close());
    return browser;
  });

describe.skipIf(CHROMIUM === undefined)("the page to connect in a real browser", () => {
  it.for(["light", "dark"] as const)(
    "connects a server, lists it and disconnects it: %s",
    async (colorScheme, { app, browser }) => {
      const page = await browser.context.newPage();
      await page.setViewportSize(VIEWPORT);
      await page.emulateMedia({ colorScheme });
      await page.goto(`${app.origin}/session/alice`);
      const [server = ""] = app.servers;
      const name = server.replace("http://", "");
      expect(await page.getByText("Not connected").count()).toBe(2);
      await shoot(page, `${colorScheme}-1-empty`);
      // With the keyboard alone.
      await tabTo(page, `Connect ${name}`);
      await page.keyboard.press("Enter");
      await page.getByText("Connected", { exact: true }).waitFor();
      expect(page.url()).toBe(`${app.origin}/`);
      await shoot(page, `${colorScheme}-2-connected`);
      const stored = async () => (await app.store.list()).map((grant) => [grant.profile, grant.server]);
      expect(await stored()).toEqual([["alice", server]]);
      const other = await browser.context.newPage();
      await other.goto(`${app.origin}/session/bob`);
      expect(await other.getByText("Not connected").count()).toBe(2);
      await other.goto(`${app.origin}/session/alice`);
      await page.getByRole("button", { name: `Disconnect ${name}` }).click();
      await page.getByRole("button", { name: `Connect ${name}` }).waitFor();
      expect(await stored()).toEqual([]);
      expect(browser.log.complaints).toEqual([]);
      await page.goto(`${app.origin}/?error=%3Cscript%3E`);
      await shoot(page, `${colorScheme}-3-failed`);
    },
  );
});

it("starts no login for another site or at another server, and shows the code of a failed one", async ({ app }) => {
  const session = await fetch(`${app.origin}/session/alice`, { redirect: "manual" });
  const cookie = session.headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");
  const post = async (path: string, fields: Record<string, string>, headers: Record<string, string>) => {
    const init = { method: "POST", body: new URLSearchParams(fields), redirect: "manual" } as const;
    const { status } = await fetch(`${app.origin}${path}`, { ...init, headers: { cookie, ...headers } });
    return status;
  };
  const [server = ""] = app.servers;
  const own = { "sec-fetch-site": "same-origin", origin: app.origin };
  expect(await post("/connect", { server }, own)).toBe(303);
  const elsewhere = { "sec-fetch-site": "same-site", origin: "http://other.127.0.0.1" };
  for (const headers of [elsewhere, { origin: "null" }, {}]) {
    expect(await post("/connect", { server }, headers)).toBe(403);
    expect(await post("/disconnect", { server, account: "" }, headers)).toBe(403);
  }
  expect(await post("/connect", { server: "http://127.0.0.1:1/mcp" }, own)).toBe(404);
  expect((await fetch(app.origin)).status).toBe(401);
  const callback = await fetch(`${app.origin}/callback?code=c&state=s`, { headers: { cookie }, redirect: "manual" });
  expect([callback.status, callback.headers.get("location")]).toEqual([303, "/?error=browser_mismatch"]);
  const page = await fetch(`${app.origin}/?error=login_not_found`, { headers: { cookie } });
  expect(await page.text()).toContain("The login took too long");
  expect(await app.store.list()).toEqual([]);
});

it("is ready, and ends on SIGTERM", async ({ app }) => {
  expect((await fetch(`${app.origin}/ready`)).status).toBe(200);
  const exit = once(app.child, "exit");
  app.child.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
});

async function shoot(page: Page, name: string): Promise<void> {
  // Nothing is cut off, and nothing has to be scrolled to the side.
  const width = await page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(VIEWPORT.width);
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function start(file: string, env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => Promise.reject(new Error("the example did not start"))),
  ]);
  return child;
}
