import { describe, expect, test } from "vitest";
import { startServer } from "../helpers/server.js";
import { callbackUrl, isFree } from "./support.js";
import { login, portOf } from "./terminal-support.js";

const BROWSER = `'${process.execPath}' -e 'fetch(process.argv[1]).then((answer) => answer.text())'`;

describe("a login at a terminal", () => {
  test("is finished by a real program as the browser, which follows the authorization server's redirect", async () => {
    const { session, authorize } = await login({ browser: BROWSER, env: process.env });
    const server = await startServer((response) => {
      response.writeHead(302, { location: callbackUrl(session.redirectUri) }).end();
    });
    expect((await authorize({ url: `${server.origin}/authorize` })).get("code")).toBe("c0de-42");
    await session.close({ ok: true });
    expect(await isFree(portOf(session))).toBe(true);
  });

  test("redirects the browser of the first callback when the user must log in again", async () => {
    const { session, text, authorize } = await login({ browser: BROWSER, env: process.env });
    const answers = [{ error: "invalid_scope" }, { code: "c0de-43", state: "another-state" }];
    const seen: string[] = [];
    const server = await startServer((response, { url, headers }) => {
      seen.push(`${url} ${headers.referer}`);
      response.writeHead(302, { location: callbackUrl(session.redirectUri, answers[seen.length - 1]) }).end();
    });
    expect((await authorize({ url: `${server.origin}/authorize?1` })).get("error")).toBe("invalid_scope");
    const again = await authorize({ url: `${server.origin}/authorize?2`, state: "another-state" });
    expect(again.get("code")).toBe("c0de-43");
    expect(seen).toEqual(["/authorize?1 undefined", "/authorize?2 undefined"]);
    expect(text().match(/To log in to/g)).toHaveLength(1);
    await session.close({ ok: true });
    expect(await isFree(portOf(session))).toBe(true);
  });
});
