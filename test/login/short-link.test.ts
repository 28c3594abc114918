import { describe, expect, test } from "vitest";
import { callbackUrl, openTest, openWaiting, raw, request, STATE, statusOf } from "./support.js";

const LOGIN = `https://issuer.example/authorize?client_id=SECRET-CLIENT&state=${STATE}&code_challenge=SECRET-CHALLENGE`;
const NAVIGATION = ["Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none"];

async function openLink() {
  const opened = await openWaiting();
  let withdrawn = 0;
  const link = new URL(opened.loopback.shortLink(LOGIN, () => withdrawn++) ?? "");
  const ask = (target: string, headers: readonly string[] = [], method = "GET") =>
    raw(opened.port, request(opened.port, target, headers, method));
  return { ...opened, link, ask, withdrawn: () => withdrawn };
}

const withoutDate = (answer: string) => answer.replace(/^Date: .*\r\n/im, "");

/** What must still work after every attempt. */
async function expectLoginStillWorks({ ask, callback, link }: Awaited<ReturnType<typeof openLink>>): Promise<void> {
  expect(await ask(link.pathname)).toContain(`location: ${LOGIN}\r\n`);
  expect(statusOf(await ask(`/callback?code=c0de-42&state=${STATE}`))).toBe(303);
  expect((await callback).get("code")).toBe("c0de-42");
}

describe("a short link", () => {
  test("leads to the login page, is stored nowhere, and sends no referrer", async () => {
    const { link, port, ask } = await openLink();
    expect(link.origin).toBe(`http://127.0.0.1:${port}`);
    const answer = await ask(link.pathname, NAVIGATION);
    expect(statusOf(answer)).toBe(303);
    expect(answer).toContain(`location: ${LOGIN}\r\n`);
    expect(answer).toMatch(/^cache-control: no-store\r$/im);
    expect(answer).toMatch(/^referrer-policy: no-referrer\r$/im);
    expect(answer.split("\r\n\r\n")[1]).not.toMatch(/SECRET|issuer\.example/);
  });

  test("fits 40 columns, and has 72 random bits that differ from login to login", async () => {
    const paths = await Promise.all([openLink(), openLink()].map(async (opened) => (await opened).link));
    for (const link of paths) {
      expect(link.pathname).toMatch(/^\/[\w-]{12}$/);
      expect(`  ${link}`.length).toBeLessThanOrEqual(40);
    }
    expect(paths[0]?.pathname).not.toBe(paths[1]?.pathname);
  });

  test("works as often as the browser needs it, and uses the redirect address's spelling of this machine", async () => {
    const { loopback, port } = await openTest({ redirectHost: "localhost" });
    const link = new URL(loopback.shortLink(LOGIN, () => undefined) ?? "");
    expect(link.host).toBe(`localhost:${port}`);
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      const answer = await raw(port, `GET ${link.pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      expect(statusOf(answer)).toBe(303);
    }
  });

  test("leads to the second request of a login where there is one, at the same path", async () => {
    const { loopback, link, ask } = await openLink();
    expect(loopback.shortLink("https://issuer.example/again", () => undefined)).toBe(link.href);
    expect(await ask(link.pathname)).toContain("location: https://issuer.example/again\r\n");
  });

  test("leads nowhere once the callback is there, or the login has ended", async () => {
    const { loopback, link, port, ask, callback } = await openLink();
    const browser = fetch(callbackUrl(loopback.redirectUri));
    await callback;
    const late = await ask(link.pathname);
    expect(statusOf(late)).toBe(409);
    expect(late).not.toMatch(/location|SECRET/i);
    await loopback.close({ ok: true });
    await browser;
    expect(await raw(port, request(port, link.pathname))).toBe("");
  });
});

describe("a request that does not know the link learns nothing and changes nothing", () => {
  const replaced = (path: string) => `${path.slice(0, -1)}${path.endsWith("A") ? "B" : "A"}`;

  test.each<[string, (path: string) => string]>([
    ["another path", replaced],
    ["half of it", (path) => path.slice(0, 7)],
    ["a longer one", (path) => `${path}A`],
    ["a slash at the end", (path) => `${path}/`],
    ["two slashes", (path) => `/${path}`],
    [
      "another case",
      (path) => path.replace(/[a-z]/i, (one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase())),
    ],
    ["an encoded character", (path) => `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`],
    ["a path parameter", (path) => `${path};x`],
    ["dots before it", (path) => `/..${path}`],
    ["15,000 characters", (path) => `${path}${"A".repeat(15_000)}`],
    ["the root", () => "/"],
  ])("%s", async (_, change) => {
    const opened = await openLink();
    const target = change(opened.link.pathname);
    const answer = await opened.ask(target);
    expect(statusOf(answer)).toBe(404);
    const other = await opened.ask("/any-other-path");
    expect(withoutDate(answer)).toBe(withoutDate(other));
    expect(answer).not.toMatch(/SECRET|issuer\.example|location/i);
    await expectLoginStillWorks(opened);
  });

  test.each([
    ["an origin", "Origin: https://evil.example"],
    ["an image", "Sec-Fetch-Dest: image"],
    ["a frame", "Sec-Fetch-Dest: iframe"],
    ["a fetch", "Sec-Fetch-Dest: empty"],
    ["a prefetch", "Sec-Purpose: prefetch"],
  ])("the right path with %s", async (_, header) => {
    const opened = await openLink();
    const answer = await opened.ask(opened.link.pathname, [header]);
    expect(statusOf(answer)).toBe(403);
    expect(answer).not.toMatch(/SECRET|location/i);
    await expectLoginStillWorks(opened);
  });

  test("the right path by the name of another host (DNS rebinding)", async () => {
    const opened = await openLink();
    const { port, link } = opened;
    for (const host of ["evil.example", `evil.example:${port}`, `localhost:${port}`, "127.0.0.1", `[::1]:${port}`]) {
      const answer = await raw(port, `GET ${link.pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      expect([statusOf(answer), answer]).toEqual([403, expect.not.stringMatching(/SECRET|location/i)]);
    }
    await expectLoginStillWorks(opened);
  });

  test.each(["POST", "HEAD", "OPTIONS", "PUT"])("the right path by %s", async (method) => {
    const opened = await openLink();
    const answer = await opened.ask(opened.link.pathname, ["Content-Length: 0"], method);
    expect(statusOf(answer)).toBe(405);
    expect(answer).not.toMatch(/SECRET|location/i);
    await expectLoginStillWorks(opened);
  });

  test("50 other paths: the link is withdrawn, once, and the login continues", async () => {
    const { loopback, link, ask, callback, withdrawn } = await openLink();
    for (let nth = 0; nth < 49; nth++) expect(statusOf(await ask(`/${nth}`))).toBe(404);
    expect(statusOf(await ask(link.pathname))).toBe(303);
    expect(withdrawn()).toBe(0);
    for (let nth = 0; nth < 20; nth++) expect(statusOf(await ask(`/${nth}`))).toBe(404);
    expect(withdrawn()).toBe(1);
    expect(statusOf(await ask(link.pathname))).toBe(404);
    expect(loopback.shortLink(LOGIN, () => undefined)).toBeUndefined();
    expect(statusOf(await ask(`/callback?code=c0de-42&state=${STATE}`))).toBe(303);
    expect((await callback).get("code")).toBe("c0de-42");
  });

  test("any number of requests that a web page can make for other paths", async () => {
    const opened = await openLink();
    for (let nth = 0; nth < 60; nth++) {
      const header = ["Sec-Fetch-Dest: image", "Sec-Fetch-Dest: empty", "Origin: null"][nth % 3] ?? "";
      expect(statusOf(await opened.ask(`/${nth}`, [header]))).toBe(403);
    }
    expect(opened.withdrawn()).toBe(0);
    await expectLoginStillWorks(opened);
  });

  test("any number of requests where the login shows no link", async () => {
    const { loopback, port } = await openWaiting();
    for (let nth = 0; nth < 60; nth++) expect(statusOf(await raw(port, request(port, `/${nth}`)))).toBe(404);
    expect(loopback.shortLink(LOGIN, () => undefined)).toBeDefined();
  });
});
