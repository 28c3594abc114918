import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { collect, linesOf, startCli, temporaryFolder, until } from "../../../helpers/cli.js";

const ID = "abcdefghijkl";

/** The process that waits for a callback, with the folder of a started login. */
function startReceiver() {
  const home = temporaryFolder();
  const folder = join(home, "logins");
  mkdirSync(folder, { mode: 0o700 });
  const path = (kind: string) => join(folder, `${ID}.${kind}`);
  writeFileSync(path("json"), "{}", { mode: 0o600 });
  const run = startCli(["receive-callback"], { env: { AGENTAUTH_HOME: home } });
  const [out, err, closed] = [collect(run.stdout), collect(run.stderr), once(run, "close")];
  const answers = () => linesOf(out()).map((line) => JSON.parse(line));
  const say = async (message: unknown) => {
    const before = answers().length;
    run.stdin?.write(`${JSON.stringify(message)}\n`);
    await until(() => answers().length > before || run.exitCode !== null);
    return answers().at(-1);
  };
  /** Makes it wait. @returns the redirect address */
  const hold = async (ttlMs = 60_000) => {
    const { redirectUri } = (await say({})) as { redirectUri: string };
    expect(await say({ id: ID, state: "state-1", ttlMs })).toEqual({ isHeld: true });
    return redirectUri;
  };
  const ended = async () => {
    await closed;
    return { code: run.exitCode, stderr: err(), listener: existsSync(path("listener")) };
  };
  return { run, path, say, hold, ended, answers };
}

const ENDED = { code: 0, stderr: "", listener: false };
const isOpen = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  );

it.each([[""], ["[]\n"]])("ends without a word that says what to bind: %j", async (text) => {
  const { run, ended, answers } = startReceiver();
  run.stdin?.end(text);
  expect([await ended(), answers()]).toEqual([ENDED, []]);
});

it.each([[""], ["null\n"]])("frees the address where its starter leaves: %j", async (text) => {
  const { run, say, ended } = startReceiver();
  const { redirectUri } = await say({ redirectHost: "localhost" });
  expect(redirectUri).toMatch(/^http:\/\/localhost:\d+\/callback$/);
  run.stdin?.end(text);
  expect([await ended(), await isOpen(redirectUri)]).toEqual([ENDED, false]);
});

it("refuses an order for no login", async () => {
  const { say, ended } = startReceiver();
  await say({});
  await say({ id: "../../x", state: "s", ttlMs: 1 });
  expect(await ended()).toMatchObject({ code: 2, stderr: expect.stringContaining("is not a login id") });
});

it("records its process and its end time, stores the callback of the login, and ends", async () => {
  const { path, hold, ended } = startReceiver();
  const redirectUri = await hold();
  const record = JSON.parse(readFileSync(path("listener"), "utf8"));
  expect(record).toMatchObject({ pid: process.pid, until: expect.any(Number) });
  expect(Math.abs(record.until - Date.now() - 60_000)).toBeLessThan(30_000);
  await (await fetch(`${redirectUri}?code=c&state=another`)).text();
  expect(existsSync(path("callback"))).toBe(false);
  await (await fetch(`${redirectUri}?code=code-1&state=state-1&more=x`)).text();
  expect(await ended()).toEqual(ENDED);
  expect(readFileSync(path("callback"), "utf8")).toBe("code=code-1&state=state-1\n");
  expect(await isOpen(redirectUri)).toBe(false);
});

it("ends when its time is up", async () => {
  const { path, hold, ended } = startReceiver();
  await hold(50);
  expect([await ended(), existsSync(path("callback"))]).toEqual([ENDED, false]);
});

it("ends when the login is finished without it", async () => {
  const { path, hold, ended } = startReceiver();
  const redirectUri = await hold();
  rmSync(path("json"));
  expect([await ended(), await isOpen(redirectUri)]).toEqual([ENDED, false]);
});

it("stores no callback of a login that was removed at this moment", async () => {
  const { path, hold, ended } = startReceiver();
  const redirectUri = await hold();
  rmSync(path("json"));
  await isOpen(`${redirectUri}?code=code-1&state=state-1`);
  expect([await ended(), existsSync(path("callback"))]).toEqual([ENDED, false]);
});
