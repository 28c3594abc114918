import { describe, expect, test } from "vitest";
import { flagText } from "../../src/cli/flags/flag-name.js";
import { isAgentAuthError } from "../../src/errors.js";
import { checkBrowserUrl, openBrowser } from "../../src/login/browser.js";
import { detectEnvironment } from "../../src/login/platform.js";
import { quote } from "../../src/redact.js";
import { fc } from "../helpers/properties.js";
import { ON_LINUX, ON_WINDOWS } from "../helpers/systems.js";

const URL_SHOWN = "https://a.example/authorize?state=x&scope=a%20b";
const open = (command: string | undefined, env: Record<string, string | undefined> = process.env) =>
  openBrowser(URL_SHOWN, { command, env });

describe("a browser command", () => {
  test.each(["/nowhere/no-such-browser", "no-such-browser-at-all -x", "''", "'unfinished", "/", "a\0b"])(
    "%j that cannot be started has failed",
    async (command) => {
      expect(await open(command)).toBe("failed");
    },
  );

  test.skipIf(ON_WINDOWS).each([
    ["ends well", "exit 0", "opened"],
    ["ends with 3", "exit 3", "failed"],
    ["is killed", "kill -9 $$", "failed"],
    ["gets the address as its last word", `test "$#" = 0 && test "$0" = "${URL_SHOWN}"`, "opened"],
    ["has the environment without our variables", 'test "$LANG$AGENTAUTH_API_TOKEN" = xx', "opened"],
    ["can read nothing", "! read -r line", "opened"],
  ] as const)("that %s", async (_what, script, result) => {
    expect(await open(`sh -c '${script}'`, { ...process.env, LANG: "xx", AGENTAUTH_API_TOKEN: "y" })).toBe(result);
  });

  test.runIf(ON_LINUX)("runs in a process group of its own", async () => {
    const script = "read -r _ _ _ _ group _ < /proc/$$/stat && test $group = $$";
    expect(await open(`sh -c '${script}'`)).toBe("opened");
  });

  test.skipIf(ON_WINDOWS).each(["before it runs", "while it runs"])(
    "is no longer watched once the login has ended: %s",
    async (when) => {
      const controller = new AbortController();
      const abort = () => controller.abort();
      if (when === "before it runs") abort();
      else setTimeout(abort, 20);
      const options = { command: "sh -c 'sleep 0.3; exit 3'", env: process.env, signal: controller.signal };
      expect(await openBrowser(URL_SHOWN, options)).toBe("opened");
    },
  );
});

test("$BROWSER that is none, like the command, wants no browser", async () => {
  expect(await open(undefined, { BROWSER: "none" })).toBe("skipped");
  expect(await open("none", { BROWSER: "no-such-browser-at-all" })).toBe("skipped");
});

const HTTPS = "must be an https address";
const PLAIN = "must not contain control, bidirectional or invisible characters";
const LENGTH = "must not be longer than 8192 bytes";
/** The longest address that is opened. */
const LONGEST = "https://a.example/".padEnd(8192, "x");

const check = (url: string) => checkBrowserUrl(url, "authorization_endpoint", "https://issuer.example/metadata");

describe("an address for a browser", () => {
  test.each([
    ["https://a.example/x?y=z&w=1", "https://a.example/x?y=z&w=1"],
    ["HTTPS://A.Example:443/x", "https://a.example/x"],
    ["http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"],
    ["http://localhost/x", "http://localhost/x"],
    ["http://[::1]:80/x", "http://[::1]/x"],
    ["https://bücher.example/ä?ö", "https://xn--bcher-kva.example/%C3%A4?%C3%B6"],
    ["https://a.example/?q=$(x)`y`;|&z'", "https://a.example/?q=$%28x%29%60y%60;%7C&z%27"],
    ["https://a.example/'?q=a^b{c}\\\"<>", "https://a.example/%27?q=a%5Eb%7Bc%7D%5C%22%3C%3E"],
    ["https://a.example/%PATH%?%USERNAME%", "https://a.example/%25PATH%25?%25USERNAME%25"],
    ["https://a.example/%41%zz%4", "https://a.example/%41%25zz%254"],
  ])("%s is opened as %s", (given, written) => {
    expect(check(given)).toBe(written);
    expect(check(written)).toBe(written);
  });

  test.each([
    ["javascript:alert(1)", HTTPS],
    ["JaVaScRiPt:alert(1)", HTTPS],
    ["\tjavascript:alert(1)", PLAIN],
    ["data:text/html,x", HTTPS],
    ["vbscript:x", HTTPS],
    ["blob:https://a.example/x", HTTPS],
    ["file:///etc/passwd", HTTPS],
    ["smb://a.example/x", HTTPS],
    ["search-ms:query=x", HTTPS],
    ["ms-settings:", HTTPS],
    ["vscode://x/y", HTTPS],
    ["ftp://a.example/", HTTPS],
    ["\\\\host\\share", "must be an absolute URL"],
    ["--help", "must be an absolute URL"],
    ["-a", "must be an absolute URL"],
    ["", "must be an absolute URL"],
    ["/x", "must be an absolute URL"],
    ["http://a.example/", HTTPS],
    ["http://127.0.0.1.a.example/", HTTPS],
    ["http://10.0.0.1/", HTTPS],
    ["https://a.example/\u202egpj.exe", PLAIN],
    ["https://a\u200b.example/", PLAIN],
    ["https://a.example/x\ny", PLAIN],
    ["https://a.example/x\0y", PLAIN],
    ["https://a.example/\u2028", PLAIN],
    ["https://a.example/\u001b]0;x\u0007", PLAIN],
    ["https://a'b.example/", "must have a plain host name"],
    ["https://$(x).example/", "must have a plain host name"],
    [`${LONGEST}x`, LENGTH],
    [`${LONGEST.slice(0, -2)}'`, LENGTH],
    [`https://a.example/${"x".repeat(8 * 1024)}\n`, LENGTH],
    [`https://a.example/${"ä".repeat(3_000)}`, LENGTH],
  ])("%j is refused", (given, rule) => {
    const error = expect.objectContaining({
      code: "bad_address",
      class: "refused",
      message: `authorization_endpoint ${quote(given)} (from "https://issuer.example/metadata") ${rule}`,
    });
    expect(() => check(given)).toThrow(error);
  });

  test.each([LONGEST, `${LONGEST.slice(0, -3)}'`])("of 8,192 bytes is opened", (given) => {
    expect(check(given)).toHaveLength(8192);
  });

  test("with a user or password is refused without repeating it", () => {
    for (const url of ["https://login.example@evil.example/", "https://:hunter22@evil.example/"]) {
      const message = "authorization_endpoint must not contain a user name or password";
      expect(() => check(url)).toThrow(expect.objectContaining({ code: "bad_address", class: "refused", message }));
    }
  });

  test("of any kind comes out as one harmless word, or not at all", () => {
    const text = fc.string({ unit: "binary", maxLength: 60 });
    const nasty = fc.stringMatching(/^[ -~]{0,60}$/);
    fc.assert(
      fc.property(fc.oneof(text, nasty), fc.oneof(text, nasty), (path, query) => {
        let written: string;
        try {
          written = check(`https://a.example/${path}?${query}`);
        } catch (error) {
          expect(isAgentAuthError(error)).toBe(true);
          return;
        }
        expect(written).toMatch(/^https:\/\/a\.example\/(?:[\w\-.~:/?#[\]@!$&*+,;=]|%[0-9a-f]{2})*$/i);
        expect(check(written)).toBe(written);
      }),
      { numRuns: 2_000 },
    );
  });
});

const URI = "http://127.0.0.1:49152/callback";

function detect(env: Record<string, string>, files: string[] = [], platform: NodeJS.Platform = "linux") {
  return detectEnvironment({ env, platform, exists: (path) => files.includes(path) });
}

test.each([
  ["a desktop", { DISPLAY: ":0" }, [], "linux", {}, true],
  ["a Wayland desktop", { WAYLAND_DISPLAY: "wayland-0" }, [], "linux", {}, true],
  ["a Mac", {}, [], "darwin", {}, true],
  ["Windows", {}, [], "win32", {}, true],
  ["no display", {}, [], "linux", {}, false],
  ["an empty display", { DISPLAY: "" }, [], "linux", {}, false],
  ["SSH with a forwarded display", { DISPLAY: ":10", SSH_TTY: "/dev/pts/0" }, [], "linux", { ssh: true }, false],
  ["SSH to a Mac", { SSH_CONNECTION: "a 1 b 22" }, [], "darwin", { ssh: true }, false],
  ["WSL", { WSL_DISTRO_NAME: "Ubuntu" }, [], "linux", {}, true],
  ["WSL by its file", {}, ["/proc/sys/fs/binfmt_misc/WSLInterop"], "linux", {}, true],
  ["Docker", { DISPLAY: ":0" }, ["/.dockerenv"], "linux", { container: true }, true],
  ["Podman", {}, ["/run/.containerenv"], "linux", { container: true }, false],
  ["Kubernetes", { KUBERNETES_SERVICE_HOST: "10.0.0.1" }, [], "linux", { container: true }, false],
  ["SSH without a terminal", { SSH_CLIENT: "a 1 22" }, [], "darwin", { ssh: true }, false],
  ["WSL by its socket", { WSL_INTEROP: "/run/WSL/1_interop" }, [], "linux", {}, true],
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
  ["CI", { CI: "true", DISPLAY: ":99" }, [], "linux", {}, false],
  ["no CI, as a number", { CI: "0", DISPLAY: ":0" }, [], "linux", {}, true],
  ["no CI", { CI: "false", DISPLAY: ":0" }, [], "linux", {}, true],
] as const)("the environment %s", (_, env, files, platform, found, hasBrowser) => {
  const none = { ssh: false, container: false };
  expect(detect(env, [...files], platform)).toMatchObject({ ...none, ...found, hasBrowser });
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
