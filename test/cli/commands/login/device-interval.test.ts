import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { FakeClock } from "../../../helpers/clock.js";
import { startIssuer, startMcp } from "../../../helpers/issuer.js";

/** A device login after its first step, and a function for the second one on a clock where waiting takes no time. */
async function begin(answer: object = {}) {
  const issuer = await startIssuer("as");
  issuer.routes["/pool/device"] = { json: { ...issuer.device(), ...answer } };
  const mcp = await startMcp("mcp", [], issuer);
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  const step = async (...flags: string[]) => {
    const clock = new FakeClock(Date.now());
    const run = await runCli(["login", mcp.url, "--json", ...flags], { env, clock });
    return { ...run, waits: clock.waits };
  };
  const { login_id } = JSON.parse((await step("--no-wait", "--flow", "device")).stdout) as { login_id: string };
  const path = join(env.AGENTAUTH_HOME, "logins", `${login_id}.json`);
  return { issuer, path, wait: (...flags: string[]) => step("--wait", login_id, ...flags) };
}

const slower = { status: 400, json: { error: "slow_down" } };

it("polls in a second process no more often than the issuer allowed the first one (RFC 8628 section 3.5)", async () => {
  const { issuer, path, wait } = await begin();
  const tokens = issuer.routes["/pool/token"] ?? {};
  issuer.routes["/pool/token"] = slower;
  const before = statSync(path).mtimeMs;
  const stopped = await wait("--login-timeout", "17");
  expect([stopped.code, stopped.waits]).toEqual([4, [5000, 10_000, 2000]]);
  // When the login expires is counted from this time.
  expect(Math.abs(statSync(path).mtimeMs - before)).toBeLessThan(1);
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({
    device: { intervalSeconds: 15, deviceCode: "device-1" },
  });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  issuer.routes["/pool/token"] = tokens;
  const finished = await wait();
  expect([finished.code, finished.waits]).toEqual([0, [15_000]]);
});

it("does not shorten a stored interval of more than a minute", async () => {
  const { issuer, wait } = await begin({ interval: 58, expires_in: 3600 });
  issuer.routes["/pool/token"] = slower;
  expect((await wait("--login-timeout", "60")).waits).toEqual([58_000, 2000]);
  expect((await wait("--login-timeout", "66")).waits).toEqual([63_000, 3000]);
});

it.each<[string, object, string]>([
  [
    "no refresh token",
    { refresh_token: undefined },
    "; it comes without a refresh token: log in again then, or at once with an --authorize-param that the issuer returns one for",
  ],
  ["no refresh token and no end", { refresh_token: undefined, expires_in: undefined }, ""],
  ["a refresh token", {}, ""],
])("says what comes after a login with %s", async (_what, over, end) => {
  const { issuer, wait } = await begin();
  issuer.routes["/pool/token"] = { json: { ...issuer.tokens(), ...over } };
  const { code, stderr } = await wait();
  const until = "expires_in" in over ? "" : "\\nthe token expires at [^ ;]+Z";
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^logged in at \S+ \(issuer \S+\)/m)]);
  const [line = ""] = /^logged in at .*(?:\nthe token .*)?$/m.exec(stderr) ?? [];
  expect(line.endsWith(end)).toBe(true);
  expect(line.slice(0, line.length - end.length)).toMatch(
    new RegExp(`^logged in at \\S+ \\(issuer [^ )]+\\)${until}$`),
  );
});
