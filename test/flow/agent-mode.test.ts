import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../helpers/cli.js";
import { type Desk, FETCH_BROWSER, signInUrl, startDesk } from "./support.js";

const CLAUDE = { CLAUDECODE: "1" };

let desk: Desk;
beforeAll(async () => {
  desk = await startDesk();
});
afterAll(() => desk.close());

/** A browser that leaves a mark where it was started. */
function markedBrowser(home: string): string {
  const script = join(home, "browser.mjs");
  writeFileSync(
    script,
    `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(join(home, "seen"))}, "");`,
  );
  return `"${process.execPath}" ${script}`;
}

it("an agent's login opens no browser of its own accord, and says where to sign in", async () => {
  const me = desk.newcomer();
  const login = me.start(["login", me.url], { ...CLAUDE, BROWSER: markedBrowser(me.home), DISPLAY: ":9" });
  await until(() => signInUrl(login.err()) !== undefined);
  await (await fetch(signInUrl(login.err()) ?? "")).text();
  await until(() => login.child.exitCode !== null);
  expect(existsSync(join(me.home, "seen"))).toBe(false);
  expect(JSON.parse(login.out())).toMatchObject({ signed_in: true, server: me.url });
  expect(login.err()).toContain("for an AI agent (claude)");
});

it("a browser that is named is opened, and the token is the bare token", async () => {
  const me = desk.newcomer();
  const { code, stdout } = await me.run(["token", me.url, "--browser", FETCH_BROWSER], { env: CLAUDE });
  expect([code, stdout]).toEqual([0, `${(await me.grant()).tokens.accessToken.reveal()}\n`]);
  const cached = await me.run(["token", me.url], { env: CLAUDE });
  expect(cached).toMatchObject({ code: 0, stdout, stderr: "" });
});
