import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect } from "vitest";
import { CHROMIUM, startChromium } from "../../helpers/chromium.js";
import { it as base } from "../support.js";

const HTML = '<!doctype html><title>client</title><output></output><script type="module" src="/client.js"></script>';

const it = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("browser", async ({}, { onCleanup }) => {
    const browser = await startChromium();
    onCleanup(() => browser.context.close());
    return browser;
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("site", async ({}, { onCleanup }) => {
    const entryPoints = [join(import.meta.dirname, "page-client.mjs")];
    const { outputFiles } = await build({ entryPoints, bundle: true, format: "esm", write: false });
    const server = createServer((request, response) => {
      const isScript = request.url === "/client.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? outputFiles[0]?.text : HTML);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onCleanup(() => void server.close());
    return `http://localhost:${(server.address() as AddressInfo).port}`;
  })
  .extend("visit", ({ browser, site }) => async (server: string) => {
    const page = await browser.context.newPage();
    await page.goto(`${site}/?server=${encodeURIComponent(server)}`);
    const output = page.locator("output:not(:empty)");
    await output.waitFor();
    return output.textContent();
  });

describe.skipIf(CHROMIUM === undefined)("a page with the official SDK, in a real browser", () => {
  it.for([{}, { scopesSupported: ["mcp"] }])(
    "logs in and calls a tool where its origin is allowed: %j",
    async (options, { browser, site, start, visit }) => {
      const sandbox = await start({ devices: 1, autoApprove: "carol", allowOrigins: [site], ...options });
      expect(JSON.parse((await visit(sandbox.mcpUrl)) ?? "")).toMatchObject({ subject: "carol", scopes: ["mcp"] });
      expect(browser.log.complaints.join()).not.toContain("CORS");
    },
  );

  it("reaches nothing where its origin is not allowed", async ({ browser, start, visit }) => {
    const sandbox = await start({ devices: 1, autoApprove: "carol", allowOrigins: ["http://localhost:1"] });
    expect(await visit(sandbox.mcpUrl)).toMatch(/^error: .*fetch/);
    expect(browser.log.complaints.join()).toContain("CORS");
    expect(sandbox.requests.map(({ status }) => status)).not.toContain(200);
  });
});
