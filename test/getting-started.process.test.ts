import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BIN, cleanEnv, collect, temporaryFolder, until } from "./helpers/cli.js";
import { freePort } from "./helpers/port.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const PORT_OF_PAGES = "4000";

interface Step {
  name: string;
  language: string;
  text: string;
}

/** The programs of a page in their order, each with its heading. */
function stepsOf(path: string): Step[] {
  let name = "";
  const parts = readFileSync(join(root, path), "utf8").matchAll(/^## ([^\n]+)$|^```(\w+)\n(.*?)^```$/gms);
  return [...parts].flatMap(([, heading, language = "", text = ""]) => {
    if (heading !== undefined) name = heading;
    return heading === undefined ? [{ name, language, text }] : [];
  });
}

const TOKENS = "docs/getting-started.md";
const LISTS = "docs/getting-started-lists.md";
// scripts/test-package.mjs installs the package, and no account is here.
const LEFT_OUT = ["1. Install", "5. Use your own account"];
const readme = stepsOf("README.md").filter(({ language }) => language === "console");

describe.each([TOKENS, LISTS])("a new user who follows %s", (path) => {
  // What is written for PowerShell has a step for sh before it.
  const steps = stepsOf(path).filter(({ name, language }) => !LEFT_OUT.includes(name) && language !== "powershell");
  const folder = temporaryFolder();
  const bin = join(folder, "bin");
  let env: Record<string, string>;
  let port: string;
  let sandbox = () => "";

  beforeAll(async () => {
    port = String(await freePort());
    mkdirSync(bin);
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(root, join(folder, "node_modules/agentauth"), "junction");
    program("agentauth", `exec "${process.execPath}" "${BIN}" "$@"`);
    // Follows the redirects of the sandbox's login page, as a browser does.
    program("browser", `exec "${process.execPath}" -e "fetch(process.argv[1])" "$1"`);
    env = cleanEnv({ AGENTAUTH_HOME: join(folder, "home"), BROWSER: join(bin, "browser") });
    env["PATH"] = `${bin}:${env["PATH"]}`;
  });
  afterAll(() => shell("agentauth sandbox stop"));

  function program(name: string, line: string): void {
    writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(bin, name), 0o755);
  }

  async function shell(text: string) {
    const child = spawn("bash", ["-euo", "pipefail", "-c", text], { cwd: folder, env, stdio: "pipe" });
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    child.stdin.end();
    // What goes on in the background keeps the pipes open.
    const isBackground = /&\s*$/.test(text);
    const [code] = await once(child, isBackground ? "exit" : "close");
    if (isBackground) sandbox = stdout;
    return { code, stdout: stdout(), stderr: stderr() };
  }

  it.each(steps.map((step, nth) => ({ ...step, nth: nth + 1 })))("$nth ($name)", async ({ language, text }) => {
    const here = text.replaceAll(PORT_OF_PAGES, port);
    // One profile is selected for all of them.
    expect(here).not.toContain("--profile");
    if (language === "js") {
      const [, file = ""] = /^\/\/ (\S+)$/m.exec(text) ?? [];
      expect(file).toMatch(/\.mjs$/);
      return writeFileSync(join(folder, file), here);
    }
    // The README's commands need the sandbox that the last step of the page stops.
    if (path === TOKENS && here.includes("sandbox stop")) await runReadme();
    const { code, stdout, stderr } = await shell(here);
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.not.stringContaining("error:") });
    if (here.includes("sandbox start")) await until(() => sandbox().includes("sandbox ready"));
    if (here.includes("node call.mjs")) expect(stdout).toBe("200\n");
    if (here.includes("node devices.mjs")) expect(stdout).toMatch(/^dev_\w+ .+\n/);
    if (here.includes("whoami")) expect(JSON.parse(stdout)).toMatchObject({ subject: "alice" });
    if (here.includes("tools/list")) expect(stdout).toContain('"whoami"');
    if (here.includes("exec ")) expect(stdout).toBe("true\n");
  });

  async function runReadme(): Promise<void> {
    const [shown] = readme;
    const commands = shown?.text.match(/^\$ .+$/gm) ?? [];
    expect(commands).toHaveLength(4);
    for (const line of commands) {
      const { code, stderr } = await shell(line.slice(2).replaceAll(PORT_OF_PAGES, port));
      expect({ line, code, stderr }).toMatchObject({ code: 0 });
    }
  }
});
