import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { collect, runProcess, startProcess, temporaryFolder, until } from "../helpers/cli.js";
import { ON_LINUX } from "../helpers/systems.js";
import { sandboxTest } from "../sandbox/sandbox-test.js";
import { callbackOf } from "./support.js";

interface Started {
  login_id: string;
  url: string;
  listening: boolean;
}

const it = sandboxTest({ accounts: 1, domains: 1, pools: 1, devices: 1, autoApprove: true, iss: true })
  .extend("home", () => temporaryFolder())
  /** The first step of a login. */
  .extend("startLogin", ({ sandbox, home }) => async (...flags: string[]): Promise<Started> => {
    const args = ["login", sandbox.mcpUrl, "--no-wait", "--json", ...flags];
    const { code, stdout, stderr } = await runProcess(args, { env: { AGENTAUTH_HOME: home } });
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as Started;
  })
  /** Its second step. */
  .extend(
    "finish",
    ({ sandbox, home }) =>
      ({ login_id }: Started, ...flags: string[]) =>
        runProcess(["login", sandbox.mcpUrl, "--wait", login_id, "--json", ...flags], {
          env: { AGENTAUTH_HOME: home },
        }),
  );

const fileOf = (home: string, { login_id }: Started, kind: string) => join(home, "logins", `${login_id}.${kind}`);

function pidOf(home: string, started: Started): number {
  return (JSON.parse(readFileSync(fileOf(home, started, "listener"), "utf8")) as { pid: number }).pid;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process whose parent has not waited for it.
    return !ON_LINUX || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

describe("the process that waits for a callback between the two steps of a login", () => {
  it("receives it before the second step, stores the code alone in a private file, and ends", async ({
    sandbox,
    home,
    startLogin,
    finish,
  }) => {
    const started = await startLogin();
    expect(started).toMatchObject({ listening: true, flow: "browser" });
    const pid = pidOf(home, started);
    expect(isRunning(pid)).toBe(true);
    const pending = await runProcess(["status", "--json"], { env: { AGENTAUTH_HOME: home } });
    expect([pending.code, JSON.parse(pending.stdout)]).toMatchObject([
      4,
      [{ state: "pending", login_id: started.login_id, flow: "browser", server: sandbox.mcpUrl }],
    ]);
    if (ON_LINUX) {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      const state = new URL(started.url).searchParams.get("state") ?? "?";
      expect(command.join(" ")).not.toContain(state);
      expect(environment.split("\0").map((one) => one.split("=")[0])).toEqual(["AGENTAUTH_HOME", ""]);
    }
    const page = await (await fetch(started.url)).text();
    expect(page).toContain("The response to your login was received");
    await until(() => !isRunning(pid));
    const path = fileOf(home, started, "callback");
    const stored = new URLSearchParams(readFileSync(path, "utf8").trim());
    expect([statSync(path).mode & 0o777, [...stored.keys()].sort()]).toEqual([0o600, ["code", "iss", "state"]]);
    const { code, stdout } = await finish(started);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { logged_in: true, state: "valid" }]);
    expect(readdirSync(join(home, "logins"))).toEqual([]);
  });

  it("receives it while the second step waits, and both end", async ({ sandbox, home, startLogin }) => {
    const started = await startLogin();
    const pid = pidOf(home, started);
    const second = startProcess(["login", sandbox.mcpUrl, "--wait", started.login_id], {
      env: { AGENTAUTH_HOME: home },
    });
    const err = collect(second.stderr);
    await until(() => err().includes("Waiting for the login"));
    await (await fetch(started.url)).text();
    await until(() => second.exitCode !== null && !isRunning(pid));
    expect([second.exitCode, err()]).toEqual([0, expect.stringContaining("logged in at")]);
  });

  it("holds two logins at once, each by its own process", async ({ home, startLogin, finish }) => {
    const [first, second] = [await startLogin(), await startLogin()];
    const pids = [pidOf(home, first), pidOf(home, second)];
    await fetch(second.url);
    await fetch(first.url);
    expect([(await finish(first)).code, (await finish(second)).code]).toEqual([0, 0]);
    await until(() => !pids.some(isRunning));
  });

  it("ends when its time is up, and where the login is removed", async ({ home, startLogin }) => {
    const [short, removed] = [await startLogin("--login-timeout", "1"), await startLogin()];
    await until(() => !existsSync(fileOf(home, short, "listener")));
    const pid = pidOf(home, removed);
    rmSync(fileOf(home, removed, "json"));
    await until(() => !isRunning(pid));
  });

  it("is not needed: where it was killed, the second step listens itself", async ({ sandbox, home, startLogin }) => {
    const started = await startLogin();
    const pid = pidOf(home, started);
    process.kill(pid, "SIGKILL");
    await until(() => !isRunning(pid));
    const second = startProcess(["login", sandbox.mcpUrl, "--wait", started.login_id], {
      env: { AGENTAUTH_HOME: home },
    });
    const err = collect(second.stderr);
    await until(() => err().includes("Waiting for the login"));
    await (await fetch(started.url)).text();
    await until(() => second.exitCode !== null);
    expect([second.exitCode, err()]).toEqual([0, expect.stringContaining("logged in at")]);
  });

  it("ends where the login is finished by a pasted callback", async ({ home, startLogin, finish }) => {
    const started = await startLogin();
    const pid = pidOf(home, started);
    expect((await finish(started, "--callback-url", await callbackOf(started.url))).code).toBe(0);
    await until(() => !isRunning(pid));
  });
});
