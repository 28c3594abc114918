import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openBrowser } from "../../src/login/browser.js";
import { startServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";
import { ON_LINUX } from "../helpers/systems.js";

const URL_SHOWN = "https://a.example/authorize?state=x&scope=a%20b";
const NODE = `'${process.execPath}'`;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "agentauth browser "));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A program for Node; the path has a blank in it. */
function script(source: string): string {
  const path = join(folder(), "browser.cjs");
  writeFileSync(path, `#!${process.execPath}\n${source}`);
  chmodSync(path, 0o755);
  return path;
}

/** A program that writes its arguments, environment and process to a file; also the reader of that file. */
function recorder(): { path: string; read: () => { argv: string[]; env: Record<string, string>; parent: number } } {
  const file = join(folder(), "seen.json");
  const path = script(
    `const { writeFileSync } = require("node:fs");
    writeFileSync(${JSON.stringify(file)}, JSON.stringify({ argv: process.argv.slice(2), env: process.env, parent: process.ppid }));`,
  );
  return { path, read: () => JSON.parse(readFileSync(file, "utf8")) };
}

const open = (command: string | undefined, env: Record<string, string | undefined> = process.env, url = URL_SHOWN) =>
  openBrowser(url, { command, env });

describe("a browser command", () => {
  test("gets the address as its last argument and fetches it", async () => {
    const server = await startServer((response) => response.end("hello"));
    const path = script(`fetch(process.argv[2]).then((answer) => answer.text())`);
    expect(await open(`${NODE} '${path}'`, process.env, `${server.origin}/authorize?a=b`)).toBe("opened");
    expect(server.requests.map(({ url }) => url)).toEqual(["/authorize?a=b"]);
  });

  test("is a list of words: nothing in it or in the address means anything to a shell", async () => {
    const { path, read } = recorder();
    const marker = join(folder(), "marker");
    const words = [`$(touch '${marker}')`, "a b", "`x`", ";|&<>^", "%PATH%", "$HOME", "*", '"', "\\"];
    const quoted = words.map((word) => (word.includes("'") ? `"${word}"` : `'${word}'`)).join(" ");
    const url = `https://a.example/$(touch ${marker})?q=\`x\`;|&'%PATH%"^&y=<>`;
    expect(await open(`${NODE} '${path}' ${quoted}`, process.env, url)).toBe("opened");
    const seen = read();
    const target = seen.argv.at(-1) ?? "";
    expect(seen.argv.slice(0, -1)).toEqual(words);
    expect(target).toMatch(/^https:\/\/a\.example\/[\w\-.~:/?$&;=%]*$/);
    expect(target).toContain("%25PATH%25");
    // Its parent is this process: there is no shell in between.
    expect(seen.parent).toBe(process.pid);
    expect(existsSync(marker)).toBe(false);
  });

  test("is given the environment without our own settings", async () => {
    const { path, read } = recorder();
    const env = { ...process.env, AGENTAUTH_CLIENT_SECRET: "PLANTED", AGENTAUTH_API_TOKEN: "PLANTED", LANG: "xx" };
    expect(await open(`${NODE} '${path}'`, env)).toBe("opened");
    expect(read().env["LANG"]).toBe("xx");
    expect(JSON.stringify(read().env)).not.toContain("PLANTED");
  });

  test("that ends with 3 has failed", async () => {
    expect(await open(`${NODE} '${script("process.exit(3)")}'`)).toBe("failed");
  });

  test("that is killed has failed", async () => {
    expect(await open(`${NODE} '${script("process.kill(process.pid, 'SIGKILL')")}'`)).toBe("failed");
  });

  test("that does not end is the browser", async () => {
    const file = join(folder(), "pid");
    const path = script(
      `require("node:fs").writeFileSync(${JSON.stringify(file)}, String(process.pid)); setTimeout(() => {}, 60_000)`,
    );
    expect(await open(`${NODE} '${path}'`)).toBe("opened");
    const pid = Number(readFileSync(file, "utf8"));
    // It goes on after us, in a group of its own.
    expect(process.kill(pid, 0)).toBe(true);
    process.kill(-pid, "SIGKILL");
  });

  test("that does not end is no longer watched once the login has ended", async () => {
    const controller = new AbortController();
    const server = await startServer((response) => response.end());
    const path = script("fetch(process.argv[2] + process.pid); setTimeout(() => {}, 60_000)");
    let isSettled = false;
    const options = { command: `${NODE} '${path}'`, env: process.env, signal: controller.signal };
    const opened = openBrowser(`${server.origin}/`, options).finally(() => {
      isSettled = true;
    });
    await expect.poll(() => server.requests.length).toBe(1);
    expect(isSettled).toBe(false);
    controller.abort();
    expect(await opened).toBe("opened");
    process.kill(Number(server.requests[0]?.url.slice(1)), "SIGKILL");
  });

  test("is not run for an address that no browser should be sent to", async () => {
    const { path, read } = recorder();
    for (const url of ["javascript:alert(1)", "--version", "file:///etc/passwd", "https://a@b.example/"]) {
      expect(await rejection(open(`${NODE} '${path}'`, process.env, url))).toMatchObject({ code: "bad_address" });
    }
    expect(read).toThrow("ENOENT");
  });
});

describe("$BROWSER", () => {
  test("is used where no command is given", async () => {
    const { path, read } = recorder();
    expect(await open(undefined, { ...process.env, BROWSER: `${NODE} '${path}' 'a b'` })).toBe("opened");
    expect(read().argv).toEqual(["a b", URL_SHOWN]);
  });

  test("gives way to the command", async () => {
    const { path, read } = recorder();
    expect(await open(`${NODE} '${path}'`, { ...process.env, BROWSER: "no-such-browser-at-all" })).toBe("opened");
    expect(read().argv).toEqual([URL_SHOWN]);
  });
});

// The opener of Linux is a script that looks at the environment of this process.
describe.runIf(ON_LINUX)("the system's browser", () => {
  function systemBrowser(path: string): void {
    vi.stubEnv("BROWSER", path);
    for (const name of ["DISPLAY", "WAYLAND_DISPLAY", "XDG_CURRENT_DESKTOP", "DESKTOP_SESSION"])
      vi.stubEnv(name, undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
  }

  test("is used where nothing is said, also where $BROWSER is empty", async () => {
    for (const env of [{}, { BROWSER: "" }, { BROWSER: "  " }]) {
      const { path, read } = recorder();
      const link = join(tmpdir(), `agentauth-browser-${process.pid}.cjs`);
      writeFileSync(link, readFileSync(path), { mode: 0o755 });
      onTestFinished(() => rmSync(link, { force: true }));
      systemBrowser(link);
      expect(await open(undefined, env)).toBe("opened");
      expect(read().argv).toEqual([URL_SHOWN]);
    }
  });

  test("that cannot be started has failed", async () => {
    systemBrowser("/nowhere/no-such-browser");
    expect(await open(undefined, {})).toBe("failed");
  });
});
