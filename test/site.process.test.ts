import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHROMIUM, startChromium } from "./helpers/chromium.js";

const SITE = fileURLToPath(new URL("../docs/.vitepress/dist", import.meta.url));
const isBuilt = existsSync(join(SITE, "index.html"));
if (!isBuilt) process.stderr.write("SKIPPED: the tests of the documentation site need it built: npm run docs\n");

const pages = isBuilt ? readdirSync(SITE).filter((name) => name.endsWith(".html") && name !== "404.html") : [];
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const PICTURES: Record<string, string> = { ".svg": "image/svg+xml", ".png": "image/png" };

const html = (path: string) => readFileSync(join(SITE, path), "utf8");
const values = (text: string, attribute: string) =>
  [...text.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "g"))].map(([, value = ""]) => decodeURI(value));

/** What a link leads to is missing: a file, or an element of a page. */
function isBroken(link: string): boolean {
  const { pathname, hash } = new URL(link, "http://site");
  const path = decodeURI(pathname === "/" ? "/index.html" : pathname);
  const file = [path, `${path}.html`].find((one) => existsSync(join(SITE, one)) && statSync(join(SITE, one)).isFile());
  if (file === undefined) return true;
  return hash !== "" && !values(html(file), "id").includes(decodeURIComponent(hash.slice(1)));
}

describe.skipIf(!isBuilt)("the documentation site", () => {
  it("has a page for each file of docs/", () => {
    const sources = readdirSync("docs").filter((name) => name.endsWith(".md"));
    expect(pages.toSorted()).toEqual(sources.map((name) => name.replace(/\.md$/, ".html")).toSorted());
  });

  it.each(pages)("%s links to files and elements that are there", (page) => {
    const links = [...values(html(page), "href"), ...values(html(page), "src")];
    const own = links
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => posix.join("/", link.startsWith("#") ? `${page}${link}` : link));
    expect(own.length).toBeGreaterThan(5);
    expect(own.filter(isBroken)).toEqual([]);
  });
});

describe.skipIf(!isBuilt)("the API reference", () => {
  it("names the modules as they are imported, each with a sentence, and leads back", () => {
    const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as { exports: Record<string, unknown> };
    const entries = Object.entries(exports).flatMap(([name, target]) =>
      typeof target === "string" ? [] : [name.replace(".", "agentauth")],
    );
    const index = html("api/index.html");
    expect(values(index, "href")).toContain("/");
    for (const entry of entries) {
      expect(index).toContain(`>${entry}</a>`);
      const module = html(`api/modules/${entry.replace("/", "_")}.html`);
      expect(module).toMatch(/<h1>[^<]*<\/h1>[\s\S]*?<div class="tsd-comment[^"]*"><p>[A-Z]/);
    }
  });
});

describe.skipIf(!isBuilt || CHROMIUM === undefined)("in a browser", () => {
  const server = createServer((request, response) => {
    const path = decodeURI(new URL(request.url ?? "/", "http://site").pathname);
    const file = [path, `${path}.html`, join(path, "index.html")].find((one) => {
      return existsSync(join(SITE, one)) && statSync(join(SITE, one)).isFile();
    });
    const type = extname(file ?? "");
    response.writeHead(file === undefined ? 404 : 200, {
      "content-type": TYPES[type] ?? PICTURES[type] ?? "text/plain",
    });
    response.end(file === undefined ? "" : readFileSync(join(SITE, file)));
  });
  let origin: string;
  let chromium: Awaited<ReturnType<typeof startChromium>>;

  beforeAll(async () => {
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    chromium = await startChromium();
  });
  afterAll(async () => {
    await chromium.context.close();
    server.close();
  });

  /** Opens a page on the screen of a telephone, and returns what is wrong with it. */
  async function problemsOf(path: string) {
    chromium.log.complaints.length = 0;
    chromium.log.requested.length = 0;
    const page = await chromium.context.newPage();
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${origin}/${path}`, { waitUntil: "networkidle" });
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");
    const foreign = chromium.log.requested.filter((url) => url.origin !== origin && url.protocol.startsWith("http"));
    await page.close();
    return { complaints: [...chromium.log.complaints], width, foreign: foreign.map(String) };
  }
  const nothing = { complaints: [], width: 390, foreign: [] };

  it.each([...pages, "api/index.html", "api/classes/agentauth.AgentClient.html"])(
    "%s opens without an error, fits 390 pixels, and needs nothing from elsewhere",
    async (path) => {
      expect(await problemsOf(path)).toEqual(nothing);
    },
  );

  /** The words in the tables of a page that begin on one line and end on another, or are cut by their cell. */
  const CUT_WORDS = `[...document.querySelectorAll(".vp-doc td, .vp-doc th")].flatMap((cell) => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const cut = [];
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      // Prose may be divided at a hyphen or a slash, a name may not.
      const words = node.parentElement.closest("code") ? /\\S+/g : /[^\\s\\-/\u2013\u200b]+/g;
      for (const { 0: word, index } of node.data.matchAll(words)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom)));
        if (lines.size > 1 || range.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1) cut.push(word);
      }
    }
    return cut;
  })`;

  it.each(pages)("%s cuts no word of its tables at 390 and 1280 pixels", async (path) => {
    const page = await chromium.context.newPage();
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${origin}/${path}`, { waitUntil: "networkidle" });
      expect({ width, cut: await page.evaluate(CUT_WORDS) }).toEqual({ width, cut: [] });
    }
    await page.close();
  });

  /** The code blocks and tables of a page that show a part of their width, each with its longest line. */
  const CUT_BLOCKS = `[...document.querySelectorAll(".vp-doc pre, .vp-doc table")]
    .filter((block) => block.scrollWidth > block.clientWidth + 1)
    .map((block) => block.innerText.split("\\n").sort((a, b) => b.length - a.length)[0])`;

  it.each(pages)("%s has no code and no table that scrolls sideways at 1280 and 1440 pixels", async (path) => {
    const page = await chromium.context.newPage();
    for (const width of [1280, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${origin}/${path}`, { waitUntil: "load" });
      expect({ width, cut: await page.evaluate(CUT_BLOCKS) }).toEqual({ width, cut: [] });
    }
    await page.close();
  });

  it.each([
    [1280, "light", "login"],
    [1280, "dark", "login"],
    [390, "light", "narrow"],
    [390, "dark", "narrow"],
  ] as const)(
    "the first screen of %d pixels, %s, has the installation and the picture",
    async (width, colorScheme, name) => {
      const page = await chromium.context.newPage();
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await page.goto(origin, { waitUntil: "networkidle" });
      const picture = page.locator(".VPHome picture img");
      const shown = await picture.evaluate(async ({ currentSrc }: { currentSrc: string }) => {
        return (await fetch(currentSrc)).text();
      });
      expect(shown).toBe(readFileSync(`docs/images/${name}-${colorScheme}.svg`, "utf8"));
      for (const part of [page.getByText("npm install --global ."), picture]) {
        const box = await part.boundingBox();
        expect((box?.y ?? 800) + (box?.height ?? 800)).toBeLessThan(800);
      }
      await page.close();
    },
  );

  const drawn = pages.filter((page) =>
    readFileSync(`docs/${page.replace(/html$/, "md")}`, "utf8").includes("```mermaid"),
  );

  it.each(drawn)("%s has diagrams with letters that are read on a telephone", async (path) => {
    const page = await chromium.context.newPage();
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${origin}/${path}`, { waitUntil: "networkidle" });
    await page.locator(".mermaid svg").first().waitFor();
    const heights = await page.evaluate<number[]>(
      `[...document.querySelectorAll(".mermaid svg text")].map((text) => text.getBoundingClientRect().height)`,
    );
    expect(heights.filter((height) => height > 0 && height < 12)).toEqual([]);
    await page.close();
  });

  it("draws the diagrams in both themes, and the search finds a page", async () => {
    const page = await chromium.context.newPage();
    await page.setViewportSize({ width: 1400, height: 800 });
    await page.goto(`${origin}/how-it-works`);
    await page.locator(".mermaid svg").nth(1).waitFor();
    const light = await page.locator(".mermaid svg").first().innerHTML();
    await page.locator(".VPNavBarAppearance button").click();
    await page.waitForFunction("document.documentElement.classList.contains('dark')");
    await page.waitForFunction(`document.querySelector(".mermaid svg").innerHTML !== ${JSON.stringify(light)}`);

    await page.keyboard.press("Control+k");
    await page.locator("#localsearch-input").fill("iss_mismatch");
    await page.locator("#localsearch-list a[href*='troubleshooting']").first().waitFor();
    await page.close();
  });
});
