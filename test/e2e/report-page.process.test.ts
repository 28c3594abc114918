import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrowserLog, CHROMIUM, startChromium } from "../helpers/chromium.js";
import { startTestbed, type Testbed, temporaryFolder } from "../helpers/cli.js";

const HOSTILE = `"'><script>document.title="taken"</script><img src=x onerror=alert(1)></style>\u202e`;
const SIZES = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
];

describe.skipIf(CHROMIUM === undefined)("the page of a report in a real browser", () => {
  let testbed: Testbed;
  let server: Server;
  let context: BrowserContext;
  let log: BrowserLog;
  let page: Page;
  let path: string;

  beforeAll(async () => {
    testbed = await startTestbed({ devices: 3000 });
    const { sandbox } = testbed;
    const client = {
      auth_profile: "mcp",
      client_secret: "<CLIENT_SECRET>",
      pkce_required: false,
      redirect_uris: [HOSTILE],
    };
    const hostile = { title: HOSTILE, dynamic_client_details: { ...client, title: HOSTILE } };
    sandbox.data.insertDevice(sandbox.ids.pool, { ...hostile, status: HOSTILE as "active" } as never);
    path = join(temporaryFolder(), "report.html");
    const { code } = await testbed.run(["devices", "report", "--pool", sandbox.ids.pool, "--html", path]);
    expect(code).toBe(0);
    server = createServer((_, response) => response.setHeader("content-type", "text/html").end(readFileSync(path)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ({ context, log } = await startChromium());
    page = await context.newPage();
  });
  afterAll(async () => {
    await context.close();
    server.close();
    await testbed.sandbox.close();
  });

  it("loads from a server and from a disk without one more request, and without a complaint", async () => {
    const served = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    for (const address of [served, pathToFileURL(path).href]) {
      log.requested.length = 0;
      await page.goto(address, { waitUntil: "networkidle" });
      expect(log.requested.map(({ href }) => href)).toEqual([address]);
    }
    expect(log.complaints).toEqual([]);
    expect(await page.title()).toBe(`Devices of pool ${testbed.sandbox.ids.pool}`);
    expect(await page.locator("script, img, iframe, [style], [onerror]").count()).toBe(0);
    expect(await page.getByText("<script>document.title").count()).toBeGreaterThan(0);
  });

  it.each(SIZES)(
    "fits a screen of $width by $height: nothing is cut off or has to be pushed sideways",
    async (size) => {
      await page.setViewportSize(size);
      await page.goto(pathToFileURL(path).href);
      const wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      expect(wide).toBe(0);
      for (const card of await page.locator(".card").all()) {
        const box = await card.boundingBox();
        expect(box?.width).toBeGreaterThan(300 * Math.min(1, size.width / 390) - 30);
        expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= size.width).toBe(true);
      }
      const bars = await page.locator("svg:visible").all();
      expect(bars.length).toBeGreaterThan(20);
      for (const bar of bars) expect((await bar.boundingBox())?.width).toBeGreaterThan(40);
    },
  );

  it("is dark where people like it dark, and light on paper all the same", async () => {
    await page.goto(pathToFileURL(path).href);
    const look = async (options: Parameters<Page["emulateMedia"]>[0]) => {
      await page.emulateMedia(options);
      const of = (selector: string, property: string) =>
        page.evaluate(
          `getComputedStyle(document.querySelector(${JSON.stringify(selector)}))[${JSON.stringify(property)}]`,
        );
      return Promise.all([
        of("body", "backgroundColor"),
        of("body", "color"),
        of(".bar", "fill"),
        of(".card", "backgroundColor"),
      ]);
    };
    const light = await look({ media: "screen", colorScheme: "light" });
    const dark = await look({ media: "screen", colorScheme: "dark" });
    for (const [index, color] of light.entries()) expect(dark[index]).not.toBe(color);
    const paper = await look({ media: "print", colorScheme: "dark" });
    expect(paper).toEqual(light);
    await page.emulateMedia({ media: "screen", colorScheme: "light" });
  });

  it("prints to a PDF of a few pages", async () => {
    const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
    const pages = pdf.match(/\/Type \/Page\b/g)?.length ?? 0;
    expect(pages).toBeGreaterThan(1);
    expect(pages).toBeLessThan(15);
  });

  it("has headings in order", async () => {
    const levels = await page
      .locator("h1, h2, h3")
      .evaluateAll((all: { tagName: string }[]) => all.map(({ tagName }) => Number(tagName[1])));
    expect(levels.filter((level) => level === 1)).toHaveLength(1);
    expect(levels.filter((level, at) => level - (levels[at - 1] ?? 0) > 1)).toEqual([]);
  });

  const pictures = process.env["AGENTAUTH_SCREENSHOTS"] === "1";
  it.runIf(pictures)("is photographed for the documentation", async () => {
    const tame = testbed.sandbox.data.pools(testbed.sandbox.ids.domain)[1]?.id ?? "";
    const bare = join(temporaryFolder(), "report.html");
    await testbed.run(["devices", "report", "--pool", tame, "--html", bare]);
    await page.setViewportSize({ width: 1160, height: 1000 });
    await page.goto(pathToFileURL(bare).href);
    const session = await context.newCDPSession(page);
    const clip = { x: 0, y: 0, width: 1160, height: 1118, scale: 0.57 };
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const picture = fileURLToPath(new URL(`../../docs/images/report-${colorScheme}.png`, import.meta.url));
      const { data } = await session.send("Page.captureScreenshot", { clip, captureBeyondViewport: true });
      writeFileSync(picture, Buffer.from(data, "base64"));
    }
  });
});
