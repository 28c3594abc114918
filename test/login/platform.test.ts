import { describe, expect, test } from "vitest";
import { flagText } from "../../src/cli/flags/flag-name.js";
import { detectEnvironment } from "../../src/login/platform.js";

const URI = "http://127.0.0.1:49152/callback";

function detect(env: Record<string, string>, files: string[] = [], platform: NodeJS.Platform = "linux") {
  return detectEnvironment({ env, platform, exists: (path) => files.includes(path) });
}

describe("the environment", () => {
  test.each([
    ["a desktop", { DISPLAY: ":0" }, [], "linux", {}, true],
    ["a Wayland desktop", { WAYLAND_DISPLAY: "wayland-0" }, [], "linux", {}, true],
    ["a Mac", {}, [], "darwin", {}, true],
    ["Windows", {}, [], "win32", {}, true],
    ["no display", {}, [], "linux", { headless: true }, false],
    ["an empty display", { DISPLAY: "" }, [], "linux", { headless: true }, false],
    ["SSH with a forwarded display", { DISPLAY: ":10", SSH_TTY: "/dev/pts/0" }, [], "linux", { ssh: true }, false],
    ["SSH to a Mac", { SSH_CONNECTION: "a 1 b 22" }, [], "darwin", { ssh: true }, false],
    ["WSL", { WSL_DISTRO_NAME: "Ubuntu" }, [], "linux", { wsl: true }, true],
    ["WSL by its file", {}, ["/proc/sys/fs/binfmt_misc/WSLInterop"], "linux", { wsl: true }, true],
    ["Docker", { DISPLAY: ":0" }, ["/.dockerenv"], "linux", { container: true }, true],
    ["Podman", {}, ["/run/.containerenv"], "linux", { container: true, headless: true }, false],
    ["Kubernetes", { KUBERNETES_SERVICE_HOST: "10.0.0.1" }, [], "linux", { container: true, headless: true }, false],
    ["SSH without a terminal", { SSH_CLIENT: "a 1 22" }, [], "darwin", { ssh: true }, false],
    ["WSL by its socket", { WSL_INTEROP: "/run/WSL/1_interop" }, [], "linux", { wsl: true }, true],
    [
      "no WSL on another system",
      { WSL_DISTRO_NAME: "Ubuntu" },
      ["/proc/sys/fs/binfmt_misc/WSLInterop"],
      "win32",
      {},
      true,
    ],
    ["a systemd container", { container: "lxc", DISPLAY: ":0" }, [], "linux", { container: true }, true],
    ["a container of an editor", { REMOTE_CONTAINERS: "1", DISPLAY: ":0" }, [], "linux", { container: true }, true],
    ["a codespace", { CODESPACES: "true", DISPLAY: ":0" }, [], "linux", { container: true }, true],
    ["CI", { CI: "true", DISPLAY: ":99" }, [], "linux", { ci: true }, false],
    ["no CI, as a number", { CI: "0", DISPLAY: ":0" }, [], "linux", {}, true],
    ["no CI", { CI: "false", DISPLAY: ":0" }, [], "linux", {}, true],
  ] as const)("%s", (_, env, files, platform, found, hasBrowser) => {
    const none = { ssh: false, wsl: false, container: false, ci: false, headless: false };
    expect(detect(env, [...files], platform)).toMatchObject({ ...none, ...found, hasBrowser });
  });
});

describe("the hints", () => {
  test.each<[string, Record<string, string>, string[]]>([
    ["SSH", { SSH_CONNECTION: "192.0.2.7 5 198.51.100.9 22", USER: "ada" }, []],
    ["a container", {}, ["/.dockerenv"]],
    ["WSL", { WSL_DISTRO_NAME: "Ubuntu" }, []],
    ["CI", { CI: "1" }, []],
    ["a desktop", { DISPLAY: ":0" }, []],
  ])("for %s", (_name, env, files) => {
    expect(detect(env, files).hints(URI)).toMatchSnapshot();
  });

  test("fit 80 columns", () => {
    const env = { SSH_CONNECTION: "192.0.2.7 5 198.51.100.9 22", USER: "ada", WSL_DISTRO_NAME: "Ubuntu", CI: "1" };
    const texts = [undefined, flagText].flatMap((option) => detect(env, ["/.dockerenv"]).hints(URI, option));
    expect(texts.join()).toMatch(/SSH.*container.*WSL.*CI/s);
    expect(texts.filter((line) => line.length > 80)).toEqual([]);
  });

  test("are none on a desktop", () => {
    expect(detect({ DISPLAY: ":0" }).hints(URI)).toEqual([]);
  });

  test.each([
    [
      { SSH_CONNECTION: "192.0.2.7 50000 198.51.100.9 22", USER: "ada" },
      "ssh -L 49152:127.0.0.1:49152 ada@198.51.100.9",
    ],
    [
      { SSH_CONNECTION: "192.0.2.7 50000 198.51.100.9 2222", LOGNAME: "ada" },
      "ssh -L 49152:127.0.0.1:49152 -p 2222 ada@198.51.100.9",
    ],
    [{ SSH_CONNECTION: "2001:db8::1 5 2001:db8::2 22", USER: "ada" }, "ssh -L 49152:127.0.0.1:49152 ada@2001:db8::2"],
    [{ SSH_TTY: "/dev/pts/0", USER: "ada" }, "ssh -L 49152:127.0.0.1:49152 <user@host>"],
    [{ SSH_CONNECTION: "a b $(reboot) 22;x", USER: "ada" }, "ssh -L 49152:127.0.0.1:49152 <user@host>"],
    [{ SSH_CONNECTION: "1 2 198.51.100.9 22", USER: "a;b" }, "ssh -L 49152:127.0.0.1:49152 <user@host>"],
    [
      { SSH_CONNECTION: "1 2 198.51.100.9 22", USER: "a b", LOGNAME: "ada" },
      "ssh -L 49152:127.0.0.1:49152 ada@198.51.100.9",
    ],
    [{ SSH_CONNECTION: "1 2 198.51.100.9 22;x", USER: "ada" }, "ssh -L 49152:127.0.0.1:49152 ada@198.51.100.9"],
    [{ SSH_CONNECTION: "1 2 198.51.100.9 x22", USER: "ada" }, "ssh -L 49152:127.0.0.1:49152 ada@198.51.100.9"],
  ])("for SSH have the exact line to run: %j", (env, line) => {
    expect(detect({ ...env, DISPLAY: ":0" }).hints(URI)).toContain(`  ${line}`);
  });

  test("name the port of http where the address has none", () => {
    const lines = detect({ SSH_TTY: "x", DISPLAY: ":0" }).hints("http://127.0.0.1/callback");
    expect(lines).toContain("  ssh -L 80:127.0.0.1:80 <user@host>");
  });

  test("for WSL, containers and CI name the way out", () => {
    expect(detect({ WSL_DISTRO_NAME: "Ubuntu" }).hints(URI).join()).toMatch(
      /WSL.*redirectHost: "localhost".*flow: "paste"/,
    );
    expect(detect({}, ["/.dockerenv"]).hints(URI).join()).toMatch(/container.*49152.*flow: "paste"\.$/s);
    expect(detect({}, ["/.dockerenv"]).hints(URI, flagText, true).join()).toMatch(/--flow paste or --flow device\.$/);
    expect(detect({ WSL_DISTRO_NAME: "Ubuntu" }).hints(URI, flagText).join()).toMatch(
      /try --redirect-host localhost or --flow paste\.$/,
    );
    expect(detect({ CI: "1" }).hints(URI).join()).toContain("no user can log in");
  });
});
