import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  checkSandboxToken,
  forgetSandboxState,
  readSandboxState,
  removeSandboxState,
  type SandboxState,
  writeSandboxState,
} from "../../src/profile/settings-file.js";
import { temporaryFolder } from "../helpers/folder.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const SANDBOX = "http://127.0.0.1:4711";
const STATE: SandboxState = {
  pid: process.pid,
  base_url: SANDBOX,
  api_token: "sandbox_a",
  control_token: "sandbox_control_a",
  account_id: "acc_1",
  domain_id: "dom_1",
  pool_id: "pool_1",
  mcp_url: "http://127.0.0.1:1/mcp",
};
let home: string;
let file: string;

beforeEach(() => {
  home = temporaryFolder();
  file = join(home, "sandbox.json");
});

/** The number of a process that has ended. */
async function endedProcess(): Promise<number> {
  const child = spawn("true");
  await once(child, "close");
  return child.pid ?? 0;
}

describe("what is known of the running sandbox", () => {
  it("is read as it was written, by no other user", () => {
    writeSandboxState(home, STATE);
    expect(readSandboxState(home)).toEqual(STATE);
    if (!ON_WINDOWS) expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  });

  it("is nothing where no sandbox ran, or where its process has ended", async () => {
    expect(readSandboxState(home)).toBeUndefined();
    writeSandboxState(home, { ...STATE, pid: await endedProcess() });
    expect(readSandboxState(home)).toBeUndefined();
  });

  it.each(["", "{", "null", "[]", "{}", '{"pid":"1"}', '{"pid":1.5}', '{"pid":1,"pid":1}'])(
    "is nothing where the file says %s",
    (text) => {
      writeFileSync(file, text, { mode: 0o600 });
      expect(readSandboxState(home)).toBeUndefined();
    },
  );

  const members = Object.keys(STATE).filter((name) => name !== "pid");

  it.each(members)("is nothing where the file lacks %s, or has another type of it", (name) => {
    for (const value of [undefined, 7]) {
      writeFileSync(file, JSON.stringify({ ...STATE, [name]: value }), { mode: 0o600 });
      expect(readSandboxState(home)).toBeUndefined();
    }
  });

  it("is nothing where its address is none", () => {
    writeSandboxState(home, { ...STATE, base_url: "127.0.0.1" });
    expect(readSandboxState(home)).toBeUndefined();
  });

  it("is written for people to read", () => {
    writeSandboxState(home, STATE);
    expect(readFileSync(file, "utf8")).toBe(`${JSON.stringify(STATE, null, 2)}\n`);
  });

  it.each([
    ["EPERM", true],
    ["ESRCH", false],
  ])("counts a process that answers %s to a signal: %s", (code, isThere) => {
    writeSandboxState(home, STATE);
    const kill = vi.spyOn(process, "kill").mockImplementation(() => {
      throw Object.assign(new Error(code), { code });
    });
    onTestFinished(() => void kill.mockRestore());
    expect(readSandboxState(home) !== undefined).toBe(isThere);
    expect(kill.mock.calls).toEqual([[STATE.pid, 0]]);
  });

  it.each([0, -1])("is nothing where the number is %i, which would mean a group of processes", (pid) => {
    writeFileSync(file, JSON.stringify({ ...STATE, pid }), { mode: 0o600 });
    expect(readSandboxState(home)).toBeUndefined();
  });

  it.skipIf(ON_WINDOWS)("is nothing where others could have written it", () => {
    writeSandboxState(home, STATE);
    chmodSync(file, 0o666);
    expect(readSandboxState(home)).toBeUndefined();
  });

  it("is removed by the process it belongs to, and by no other while that lives", async () => {
    writeSandboxState(home, { ...STATE, pid: process.ppid });
    removeSandboxState(home, process.pid);
    expect(existsSync(file)).toBe(true);
    removeSandboxState(home, process.ppid);
    expect(existsSync(file)).toBe(false);
    writeSandboxState(home, { ...STATE, pid: await endedProcess() });
    removeSandboxState(home, process.pid);
    expect(existsSync(file)).toBe(false);
  });

  it("is forgotten when asked, also where there is nothing", () => {
    writeSandboxState(home, STATE);
    forgetSandboxState(home);
    forgetSandboxState(home);
    expect(existsSync(file)).toBe(false);
  });
});

const keep = (token: string, address: string) =>
  checkSandboxToken({ value: token, source: "AGENTAUTH_API_TOKEN" }, { value: address, source: "--base-url" }, home);

describe("a token and an address", () => {
  beforeEach(() => writeSandboxState(home, STATE));

  it.each([
    ["token-of-a-service", "https://agentauth.example"],
    ["sandbox_a", SANDBOX],
    ["sandbox_a", "http://localhost:9"],
    ["token-of-a-service", "http://127.0.0.1:9"],
    ["of-a-service-not-sandbox_", "https://agentauth.example"],
  ])("of one world are kept: %s, %s", (token, address) => {
    expect(keep(token, address)).toBe(token);
  });

  it("of the sandbox and of another service are refused", () => {
    expect(() => keep("sandbox_a", "https://agentauth.example")).toThrow(
      expect.objectContaining({
        code: "bad_authtoken",
        class: "auth",
        message: `the API token (AGENTAUTH_API_TOKEN) is a sandbox's, and "https://agentauth.example" (--base-url) is no sandbox`,
        hint: "give the token of this service, or use the sandbox with --profile sandbox",
      }),
    );
  });

  it("of another service and of the sandbox are refused", () => {
    expect(() => keep("token-of-a-service", SANDBOX)).toThrow(
      expect.objectContaining({
        code: "bad_authtoken",
        class: "auth",
        message: `the API token (AGENTAUTH_API_TOKEN) is not the sandbox's, and "${SANDBOX}" (--base-url) is a sandbox`,
        hint: "unset AGENTAUTH_API_TOKEN for the sandbox, whose own token comes with --profile sandbox",
      }),
    );
  });
});
