import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { until } from "../helpers/cli.js";
import { FETCH_BROWSER, flowTest, loginUrl } from "./support.js";

const CLAUDE = { CLAUDECODE: "1" };

const it = flowTest();

/** A browser that leaves a mark where it was started. */
const markedBrowser = (home: string) => `touch "${join(home, "seen")}"`;

it("an agent's login opens no browser, prints where to log in, says that it does not wait, and ends", async ({
  me,
}) => {
  const env = { ...CLAUDE, BROWSER: markedBrowser(me.home), DISPLAY: ":9" };
  const { code, stdout, stderr } = await me.run(["login", me.url], { env });
  expect(code).toBe(0);
  expect(existsSync(join(me.home, "seen"))).toBe(false);
  const { login_id: id, url, finish } = JSON.parse(stdout) as Record<string, string>;
  expect(finish).toBe(`agentauth login ${me.url} --wait ${id}`);
  expect(stderr).toContain("for an AI agent (claude)");
  expect(stderr).toContain("login does not wait for the user, since an AI agent runs it");
  const second = me.start(["login", me.url, "--wait", id ?? ""], env);
  await until(() => loginUrl(second.err()) !== undefined);
  await (await fetch(url ?? "")).text();
  await until(() => second.child.exitCode !== null);
  expect(JSON.parse(second.out())).toMatchObject({ logged_in: true, server: me.url });
});

it("an agent's login waits where --browser none says so", async ({ me }) => {
  const login = me.start(["login", me.url, "--browser", "none"], CLAUDE);
  await until(() => loginUrl(login.err()) !== undefined);
  await (await fetch(loginUrl(login.err()) ?? "")).text();
  await until(() => login.child.exitCode !== null);
  expect(JSON.parse(login.out())).toMatchObject({ logged_in: true, server: me.url });
});

it("a login without a terminal does not wait either, unless a flag or BROWSER says how the user is reached", async ({
  me,
}) => {
  const plain = await me.run(["login", me.url]);
  expect(plain.code).toBe(0);
  expect(JSON.parse(plain.stdout)).toMatchObject({ login_id: expect.any(String), url: expect.any(String) });
  expect(plain.stderr).toContain("login does not wait for the user, since there is no terminal");
  const text = await me.run(["login", me.url, "-o", "text"]);
  expect(text.stdout).toMatch(/^http:\S+\/authorize\S+\n$/);
  const reached = await me.run(["login", me.url], { env: { BROWSER: FETCH_BROWSER } });
  expect(reached.stderr).toContain("logged in at http");
});

it("a browser that is named is opened, and the token is the bare token", async ({ me }) => {
  const { code, stdout } = await me.run(["token", me.url, "--browser", FETCH_BROWSER], { env: CLAUDE });
  expect([code, stdout]).toEqual([0, `${(await me.grant()).tokens.accessToken.reveal()}\n`]);
  const cached = await me.run(["token", me.url], { env: CLAUDE });
  expect(cached).toMatchObject({ code: 0, stdout, stderr: "" });
});
