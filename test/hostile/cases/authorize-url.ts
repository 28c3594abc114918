import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ALL_METADATA, type HostileCase, UP_TO_REGISTRATION, unless, WHOLE_LOGIN } from "../case.js";
import { PLANTED } from "../checks.js";
import type { Kit } from "../kit/kit.js";
import { neverLogsIn } from "../kit/user.js";

/** A refused authorization endpoint. */
function refused(id: string, input: string, endpoint: string, says: readonly (string | RegExp)[]): HostileCase {
  return {
    id,
    input: `an authorization endpoint ${input}`,
    result: "refused; no browser starts, no further request",
    outcome: "refused",
    arrange({ as }) {
      as.metadata["authorization_endpoint"] = endpoint;
    },
    says: ["authorization_endpoint", ...says],
    requests: ALL_METADATA,
  };
}

const addresses: HostileCase[] = [
  refused("U2a", "with javascript:", "javascript:alert(1)", ['"javascript:alert(1)"', "must be an https address"]),
  refused("U2b", "with data:", "data:text/html,<script>", ["must be an https address"]),
  refused("U2c", "with vbscript:", "vbscript:x", ["must be an https address"]),
  refused("U2d", "with blob:", "blob:https://as.example/x", ["must be an https address"]),
  refused("U2e", "with JaVaScRiPt:", "JaVaScRiPt:alert(1)", ["must be an https address"]),
  refused("U2f", "with a tab before javascript:", "\tjavascript:alert(1)", ["\\t", "must be an https address"]),
  refused("U2g", "with a line break inside javascript:", "java\nscript:alert(1)", ["\\n"]),
  refused("U3a", "with file:", "file:///etc/passwd", ["must be an https address"]),
  refused("U3b", "with smb:", "smb://evil.example/share", ["must be an https address"]),
  refused("U3c", "with search-ms:", "search-ms:query=x", ["must be an https address"]),
  refused("U3d", "with ms-msdt:", "ms-msdt:/id", ["must be an https address"]),
  refused("U3e", "that is a UNC path", "\\\\evil.example\\share", ["must be an absolute URL"]),
  refused("U3f", "with backslashes for slashes", "https:\\\\as.example\\a", ["backslashes"]),
  refused("U4", "with vscode:", "vscode://evil.ext/run", ["must be an https address"]),
  refused("U5a", "that begins with --", "--renderer-cmd-prefix=/bin/sh", ["must be an absolute URL"]),
  refused("U5b", "that begins with -", "-u https://as.example", ["must be an absolute URL"]),
  refused("U6", "with http: to another machine", "http://as.example/authorize", ["OAuth 2.1 section 1.5"]),
  refused("U7", "with another host's name before an @", "https://login.microsoft.com@evil.example/", [
    "user name or password",
  ]),
  refused("U8a", "with a right-to-left override in its path", "https://as.example/\u202egnp.exe", [
    "\\u{202e}",
    "invisible",
  ]),
  refused("U8b", "with a zero-width space in its host", "https://as\u200b.example/", ["\\u{200b}"]),
  refused("U8c", "with tag characters in its query", "https://as.example/?a=\u{e0041}", ["\\u{e0041}"]),
  refused("U8d", "with NUL in its path", "https://as.example/\u0000", ["\\u{0}"]),
  refused("U8e", "with a line separator (U+2028)", "https://as.example/\u2028", ["\\u{2028}"]),
  refused("U14a", "that is relative", "/authorize", ["must be an absolute URL"]),
  refused("U14b", "that is empty", "", ["must be an absolute URL"]),
  refused("U14c", "on the port of another host's name", "https://as.example:99999/", ["must be an absolute URL"]),
  {
    ...refused("U10", "of 9 KB", `https://as.example/${"a".repeat(9000)}`, ["longer than 8192 characters"]),
    requests: UP_TO_REGISTRATION,
    store: "logins",
  },
];

/** A login whose authorization parameter would change the flow. */
function parameter(id: string, input: string, text: string, says: string): HostileCase {
  return {
    id,
    input: `--authorize-param ${input}`,
    result: "refused before a request",
    outcome: "usage",
    cliOnly: true,
    command: ({ mcp }) => ["login", mcp.url, "--authorize-param", text],
    says: [says],
    requests: [],
  };
}

const parameters: HostileCase[] = [
  parameter("Y8a", "with a scope", "scope=admin", "cannot set scope: --scope does"),
  parameter("Y8b", "with another redirect address", "redirect_uri=https://evil.example/", "--redirect-host"),
  parameter("Y8c", "with a request object elsewhere", "request_uri=https://evil.example/", "cannot set request_uri"),
  parameter("Y8d", "with a name that holds another parameter", "a&scope=admin", 'cannot set "a&scope"'),
  {
    id: "Y8e",
    input: "a challenge whose scope holds another parameter",
    result: "sent as a scope; nothing else is set",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.challenge = `${mcp.challenge}, scope="tools&prompt=none&redirect_uri=https://evil.example/"`;
    },
    flags: ["--authorize-param", "audience=a&scope=admin"],
    options: { authorizationParams: { audience: "a&scope=admin" } },
    requests: WHOLE_LOGIN,
    check({ as }) {
      const query = new URLSearchParams(as.to("/pool/authorize")[0]?.url.split("?")[1] ?? "");
      return unless({
        "the scope is one text": query.get("scope") === "tools&prompt=none&redirect_uri=https://evil.example/",
        "no prompt is set": !query.has("prompt"),
        "one redirect address": query.getAll("redirect_uri").join().startsWith("http://127.0.0.1:"),
        "the value of the parameter is one text": query.get("audience") === "a&scope=admin",
      });
    },
  },
];

/** A browser that records its arguments and environment, and exits with `code`; with `goes` it logs in. */
function recordingBrowser(kit: Kit, { code = 0, goes = true, hangs = false } = {}): string {
  const folder = join(kit.folder, PLANTED);
  mkdirSync(folder, { recursive: true });
  const script = join(folder, "browser.mjs");
  writeFileSync(
    script,
    [
      'import { writeFileSync } from "node:fs";',
      `writeFileSync(${JSON.stringify(join(kit.folder, "browser"))}, JSON.stringify({ argv: process.argv.slice(2), env: process.env }));`,
      goes ? "await fetch(process.argv.at(-1)).then((page) => page.text());" : "",
      hangs ? "setTimeout(() => {}, 20_000);" : "",
      `process.exitCode = ${code};`,
    ].join("\n"),
  );
  return `"${process.execPath}" "${script}"`;
}

/** The arguments and environment of the browser; undefined if it was not started. */
function browserStart(kit: Kit): { argv: string[]; env: Record<string, string> } | undefined {
  const path = join(kit.folder, "browser");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

const TOUCH = "touch$IFS'pwned'";
const META = `$(${TOUCH})\`${TOUCH}\`;${TOUCH}|${TOUCH}&${TOUCH}<a>b'c"d^%PATH%!x`;

const browsers: HostileCase[] = [
  {
    id: "U1a",
    input: "an authorization endpoint full of shell metacharacters, and a browser given with --browser",
    result: "passed as one normalized argument, without a shell; the login continues",
    outcome: "ok",
    arrange({ as }) {
      as.metadata["authorization_endpoint"] = `${as.issuer}/authorize?x=${META}`;
    },
    drive: (kit) => kit.run(["login", kit.mcp.url, "--browser", recordingBrowser(kit)], { user: neverLogsIn }),
    requests: WHOLE_LOGIN,
    check(kit) {
      const seen = browserStart(kit);
      const address = seen?.argv[0] ?? "";
      return unless({
        "the address is the one argument": seen?.argv.length === 1,
        "it has no shell metacharacter": address !== "" && !/['"`()<>|^\\{}\s]|%(?![0-9A-F]{2})/i.test(address),
        "nothing was run": !existsSync(join(kit.folder, "work", "pwned")),
        "its environment has no AGENTAUTH_ variable": Object.keys(seen?.env ?? {}).every(
          (name) => !name.startsWith("AGENTAUTH_"),
        ),
      });
    },
  },
  {
    id: "U11a",
    input: "BROWSER empty, and no display",
    result: "the address is shown; the login continues",
    outcome: "ok",
    drive: (kit) => kit.run(["token", kit.mcp.url, "--login"], { env: { BROWSER: "" } }),
    prints: ["access-token"],
    requests: WHOLE_LOGIN,
  },
  {
    id: "U11b",
    input: "a BROWSER that asks for a shell",
    result: "started as configured, with the address as one last argument",
    outcome: "ok",
    drive: (kit) => kit.run(["login", kit.mcp.url], { env: { BROWSER: `sh -c 'printf %s "$0" > "$HOME/word"'` } }),
    requests: WHOLE_LOGIN,
    check: (kit) =>
      unless({
        "the address is one argument": readFileSync(join(kit.folder, "word"), "utf8").startsWith(
          `${kit.as.issuer}/authorize?`,
        ),
      }),
  },
  {
    id: "U11c",
    input: "a browser that exits with 3",
    result: "reported; the login continues",
    outcome: "ok",
    drive: (kit) => kit.run(["login", kit.mcp.url, "--browser", recordingBrowser(kit, { code: 3, goes: false })]),
    says: ["To log in to"],
    requests: WHOLE_LOGIN,
  },
  {
    id: "U11d",
    input: "a browser that hangs",
    result: "the login does not wait for it",
    outcome: "ok",
    drive: (kit) => kit.run(["login", kit.mcp.url, "--browser", recordingBrowser(kit, { goes: false, hangs: true })]),
    requests: WHOLE_LOGIN,
  },
  {
    id: "U11e",
    input: "a browser that does not exist",
    result: "reported; the login continues",
    outcome: "ok",
    drive: (kit) => kit.run(["login", kit.mcp.url, "--browser", "/does/not/exist"]),
    says: ["To log in to"],
    requests: WHOLE_LOGIN,
  },
  {
    id: "U12",
    input: "the command token without a terminal, with BROWSER set",
    result: "no browser; the hint is the command to run",
    outcome: "auth",
    code: "login_required",
    drive: (kit) => kit.run(["token", kit.mcp.url], { env: { BROWSER: recordingBrowser(kit) } }),
    says: ({ mcp }) => [`hint: agentauth login ${mcp.url}`],
    // Whether the server requires a login: a busy machine may not send it within the time that it may take.
    requests: ["mcp POST /mcp?"],
    check: (kit) => unless({ "no browser was started": browserStart(kit) === undefined }),
  },
  {
    id: "U13",
    input: "a refresh that the issuer refuses, with BROWSER set",
    result: "no browser; the hint is the command to run",
    outcome: "auth",
    async arrange(kit) {
      await kit.saveLogin({}, { expiresAt: Date.now() - 1000 });
      kit.as.routes["/pool/token"] = { status: 400, json: { error: "invalid_grant" } };
    },
    drive: (kit) => kit.run(["token", kit.mcp.url], { env: { BROWSER: recordingBrowser(kit) } }),
    says: ({ mcp }) => [`hint: agentauth login ${mcp.url}`, "invalid_grant"],
    store: "any",
    requests: ["as POST /pool/token"],
    times: { "as POST /pool/token": 1 },
    check: (kit) => unless({ "no browser was started": browserStart(kit) === undefined }),
  },
  {
    id: "U15",
    input: "a device login whose verification URI is not https",
    result: "refused, and not shown as a link to visit",
    outcome: "refused",
    code: "bad_address",
    flags: ["--flow", "device"],
    options: { flow: "device" },
    arrange({ as }) {
      as.routes["/pool/device"] = () => ({ json: { ...as.device(), verification_uri: "javascript:alert(1)" } });
    },
    says: ["verification_uri", '"javascript:alert(1)"'],
    store: "logins",
  },
  {
    id: "U16",
    input: "a device login whose code has escape sequences in it",
    result: "refused, not shown",
    outcome: "refused",
    flags: ["--flow", "device"],
    cliOnly: true,
    arrange({ as }) {
      as.routes["/pool/device"] = () => ({ json: { ...as.device(), user_code: "\u001b[8mABCD" } });
    },
    says: ["user_code", "\\e[8m"],
    store: "logins",
  },
  {
    id: "U17",
    input: "a device login whose code never expires, with a polling interval of a microsecond, and --login-timeout 3",
    result: "an error after 3 s, with one request per second",
    outcome: "auth",
    code: "timeout",
    flags: ["--flow", "device", "--login-timeout", "3"],
    options: { flow: "device", loginTimeoutMs: 3000 },
    hurry: 1,
    arrange({ as }) {
      as.routes["/pool/device"] = () => ({ json: { ...as.device(), expires_in: 1e300, interval: 1e-6 } });
      as.routes["/pool/token"] = { status: 400, json: { error: "authorization_pending" } };
    },
    says: ["within 3 seconds", "--login-timeout"],
    store: "logins",
    check: ({ as }) => {
      const requested = as.to("/pool/token").length;
      return unless({ "it sends one request per second": requested >= 1 && requested <= 3 });
    },
  },
];

/** Authorization endpoints, and the start of the browser. */
export const authorizeUrl: readonly HostileCase[] = [...addresses, ...parameters, ...browsers];
