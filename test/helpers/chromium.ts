import { existsSync } from "node:fs";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { temporaryFolder } from "./cli.js";

/** Chromium as distributions install it; undefined where it is not there. */
export const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

if (CHROMIUM === undefined) {
  process.stderr.write("SKIPPED: the tests of the pages need Chromium: apt-get install -y chromium\n");
}

/** Problems that a browser reported. */
export interface BrowserLog {
  /** What the consoles of the pages say of errors and warnings, and what their scripts threw. */
  complaints: string[];
  /** The address of every request. */
  requested: URL[];
}

/** A real browser without a window and without a past, which reaches nothing but this machine. */
export async function startChromium(): Promise<{ context: BrowserContext; log: BrowserLog }> {
  if (CHROMIUM === undefined) throw new Error("Chromium is not installed");
  const context = await chromium.launchPersistentContext(temporaryFolder(), {
    executablePath: CHROMIUM,
    headless: true,
    viewport: { width: 720, height: 640 },
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ],
  });
  const log: BrowserLog = { complaints: [], requested: [] };
  context.on("request", (request) => log.requested.push(new URL(request.url())));
  context.on("requestfailed", (request) => log.complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  context.on("weberror", (error) => log.complaints.push(error.error().message));
  context.on("console", (message) => {
    if (/^(error|warning)$/.test(message.type())) log.complaints.push(message.text());
  });
  return { context, log };
}

/** Moves to the button of this name by Tab alone, as a user without a mouse, who has to see where they are. */
export async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const target = page.getByRole("button", { name });
  await target.waitFor();
  for (let presses = 0; presses < 20; presses++) {
    await page.keyboard.press("Tab");
    if ((await target.and(page.locator(":focus-visible")).count()) === 0) continue;
    const outline = await target.evaluate((button: Styled) => {
      return button.ownerDocument.defaultView.getComputedStyle(button).outlineStyle;
    });
    if (outline === "none") throw new Error(`nothing shows that ${name} is in focus`);
    return;
  }
  throw new Error(`Tab does not come to ${name}`);
}

/** What is used of an element; the types of pages are not those of these tests. */
interface Styled {
  ownerDocument: { defaultView: { getComputedStyle(element: Styled): { outlineStyle: string } } };
}
