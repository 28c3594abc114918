import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type HostileCase, LISTING, unless } from "../case.js";
import { PLANTED } from "../checks.js";
import type { Kit } from "../kit/kit.js";

/** Settings that are refused before a request. */
function settings(
  id: string,
  input: string,
  text: string | Buffer | ((kit: Kit) => string),
  says: readonly (string | RegExp)[],
): HostileCase {
  return {
    id,
    input: `a settings file with ${input}`,
    result: "refused with the position; nothing is guessed or sent",
    outcome: "usage",
    command: "devices",
    cliOnly: true,
    arrange(kit) {
      mkdirSync(kit.home, { mode: 0o700 });
      writeFileSync(join(kit.home, "config.json"), typeof text === "function" ? text(kit) : text, { mode: 0o600 });
    },
    says: ["config.json", ...says],
    requests: [],
  };
}

const profile = (entries: object) => JSON.stringify({ schema: 1, profile: "default", profiles: { default: entries } });

const files: HostileCase[] = [
  settings("E5a", "an unknown key", '{"schema":1,"evil":1}', ["unknown key", '"evil"']),
  settings("E5b", "an unknown key in a profile", profile({ base_urls: "https://a.example" }), [
    "unknown key",
    "profiles.default.base_urls",
  ]),
  settings("E5c", "a number for an address", profile({ base_url: 7 }), ["profiles.default.base_url", "not a string"]),
  settings("E5d", "NaN", '{"schema":NaN}', ["is not valid JSON", "line 1"]),
  settings("E5e", "a duplicate key", '{"schema":1,\n"profile":"a","profile":"b"}', [
    '"profile" appears twice',
    "line 2",
  ]),
  settings("E5f", "a comment", '{"schema":1, // x\n}', ["is not valid JSON", "line 1"]),
  settings("E5g", "random bytes", Buffer.from(Array.from({ length: 200 }, (_, nth) => (nth * 7919) % 256)), [
    "is not valid JSON",
  ]),
  settings("E5h", "no content", "", ["is not valid JSON"]),
  settings("E5i", "a newer schema", '{"schema":2}', ["this version reads 1"]),
  settings("E5j", "an address with http: to another machine", profile({ base_url: "http://evil.example" }), [
    "profiles.default.base_url",
    "https://",
  ]),
  settings("E5k", "a user name and password in the address", profile({ base_url: "https://a:b@evil.example" }), [
    "user name or password",
  ]),
  settings("E5l", "the API token instead of its location", profile({ api_token: "sk-live-0123456789" }), [
    "env:NAME, file:PATH or exec:COMMAND",
    /^(?![\s\S]*sk-live)/,
  ]),
  settings("E5m", "a header with a line break in its name", profile({ auth_header: "X-A\r\nX-Evil: 1" }), [
    "auth_header",
  ]),
  settings("E5n", "nesting 100,000 deep", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, [
    "nested deeper than 32",
  ]),
  settings("E5o", "a profile named __proto__", '{"profiles":{"__proto__":{"base_url":"https://evil.example"}}}', [
    "is not a valid profile name",
  ]),
  settings("E5p", "an escape sequence in a key", '{"\\u001b]0;x\\u0007":1}', ["unknown key", "\\e]0;x"]),
];

/** A token file that the settings name. */
function secretFile(
  id: string,
  input: string,
  make: (path: string, kit: Kit) => unknown,
  over: Partial<HostileCase>,
): HostileCase {
  return {
    id,
    input: `an API token in ${input}`,
    result: "refused before a request; the hint is the command that repairs it",
    outcome: "store",
    command: "devices",
    cliOnly: true,
    async arrange(kit) {
      const folder = join(kit.folder, PLANTED);
      mkdirSync(folder, { mode: 0o700 });
      mkdirSync(kit.home, { mode: 0o700 });
      const path = join(folder, "token");
      await make(path, kit);
      writeFileSync(
        join(kit.home, "config.json"),
        profile({ base_url: kit.service.origin, api_token: `file:${path}` }),
        { mode: 0o600 },
      );
      kit.service.list(() => undefined);
    },
    environment: { AGENTAUTH_API_TOKEN: undefined, AGENTAUTH_BASE_URL: undefined },
    requests: [],
    ...over,
  };
}

const token = ({ canaries }: Kit) => canaries.get("api-token");

const secrets: HostileCase[] = [
  secretFile("E2a", "a file that others can read", (path, kit) => writeFileSync(path, token(kit), { mode: 0o644 }), {
    says: ["can be read by others", "chmod 600"],
  }),
  secretFile(
    "E2b",
    "a symbolic link",
    (path, kit) => {
      writeFileSync(`${path}.real`, token(kit), { mode: 0o600 });
      symlinkSync(`${path}.real`, path);
    },
    { says: ["is a symbolic link"] },
  ),
  secretFile("E2c", "a FIFO", (path) => execFileSync("mkfifo", ["-m", "600", path]), {
    says: ["is not an ordinary file"],
  }),
  secretFile("E2d", "a file of 10 MB", (path) => writeFileSync(path, "a".repeat(10e6), { mode: 0o600 }), {
    says: ["larger than 65536 bytes"],
  }),
  secretFile("E2e", "a file that does not exist", () => undefined, { says: ["cannot be read"] }),
  secretFile(
    "E2f",
    "a file with a line break at its end",
    (path, kit) => writeFileSync(path, `${token(kit)}\n`, { mode: 0o600 }),
    {
      result: "read without the line break",
      outcome: "ok",
      requests: LISTING,
      check: (kit) =>
        unless({
          "the token is sent": kit.service.to("/api/v1/device")[0]?.headers.authorization === `Bearer ${token(kit)}`,
        }),
    },
  ),
  secretFile(
    "E2g",
    "a file with a line break in its middle",
    (path, kit) => writeFileSync(path, `${token(kit)}\r\nX-Evil: 1`, { mode: 0o600 }),
    { result: "an error; no header is injected", outcome: "usage" },
  ),
  {
    ...secretFile(
      "E4b",
      "a file, and a --base-url with another origin",
      (path, kit) => writeFileSync(path, token(kit), { mode: 0o600 }),
      { result: "refused: the token belongs to the profile's base_url", outcome: "usage" },
    ),
    command: ({ elsewhere }) => ["devices", "list", "--pool", "p", "--base-url", elsewhere.origin],
    says: ["belongs to"],
  },
];

/** Files of a hostile project in the folder that the program runs in. */
function project({ folder, elsewhere }: Kit): void {
  const work = join(folder, "work");
  const text = JSON.stringify({
    schema: 1,
    profiles: { default: { base_url: elsewhere.origin } },
    base_url: elsewhere.origin,
  });
  for (const name of [".agentauth.json", "agentauth.json", "agentauth.config.json", "config.json", ".agentauthrc"])
    writeFileSync(join(work, name), text);
  mkdirSync(join(work, ".agentauth"));
  writeFileSync(join(work, ".agentauth", "config.json"), text);
  writeFileSync(
    join(work, ".env"),
    `AGENTAUTH_BASE_URL=${elsewhere.origin}\nHTTPS_PROXY=${elsewhere.origin}\nHTTP_PROXY=${elsewhere.origin}\n`,
  );
  writeFileSync(
    join(work, "package.json"),
    JSON.stringify({ agentauth: { base_url: elsewhere.origin }, type: "commonjs" }),
  );
  writeFileSync(join(work, ".npmrc"), `proxy=${elsewhere.origin}\n`);
}

const ids = ["../../v1/pool", "a?b=c", "a#b", "a&pool_id=other", "%2e%2e/x", "..", "a b", "é"];

const rest: HostileCase[] = [
  {
    id: "E4a",
    input: "a project with its own settings, .env and .npmrc",
    result: "ignored; the request goes to the configured address",
    outcome: "ok",
    command: "devices",
    cliOnly: true,
    arrange(kit) {
      project(kit);
      kit.service.list(() => undefined);
    },
    requests: LISTING,
  },
  ...ids.map(
    (id, nth): HostileCase => ({
      id: `E6${"abcdefgh"[nth]}`,
      input: `the pool id ${JSON.stringify(id)}`,
      result: "sent as one value, to the same path",
      outcome: "ok",
      command: () => ["devices", "list", "--pool", id],
      cliOnly: true,
      arrange: ({ service }) => service.list(() => undefined),
      requests: LISTING,
      check: ({ service }) => {
        const { searchParams } = new URL(service.to("/api/v1/device")[0]?.url ?? "/", service.origin);
        return unless({ "it is one value": searchParams.getAll("pool_id").join() === id });
      },
    }),
  ),
  {
    id: "E6i",
    input: "a pool id with a line break",
    result: "refused before a request",
    outcome: "usage",
    command: () => ["devices", "list", "--pool", "a\r\nX-Evil: 1"],
    cliOnly: true,
    says: ["control character"],
    requests: [],
  },
  {
    id: "E6j",
    input: "an MCP server's address with a user name and password",
    result: "refused; the password is not repeated",
    outcome: "usage",
    command: () => ["token", "https://me:pass-0123456789@mcp.example/mcp"],
    cliOnly: true,
    says: ["must not contain a user name or password", /^(?![\s\S]*pass-0123)/],
    requests: [],
  },
  {
    id: "E6k",
    input: "an MCP server's address that is javascript:",
    result: "refused",
    outcome: "usage",
    command: () => ["login", "javascript:alert(1)"],
    cliOnly: true,
    requests: [],
  },
  {
    id: "E6l",
    input: "an MCP server's address with http: to another machine",
    result: "refused",
    outcome: "usage",
    command: () => ["login", "http://mcp.example/mcp"],
    cliOnly: true,
    says: ["https://"],
    requests: [],
  },
  {
    id: "E7a",
    input: "variables that are set and empty",
    result: "treated as unset",
    outcome: "ok",
    command: ({ service }) => ["devices", "list", "--pool", "p", "--base-url", service.origin],
    cliOnly: true,
    environment: {
      AGENTAUTH_BASE_URL: "",
      AGENTAUTH_PROFILE: "",
      AGENTAUTH_STORE: "",
      HTTPS_PROXY: "",
      HTTP_PROXY: "",
    },
    arrange: ({ service }) => service.list(() => undefined),
    requests: LISTING,
  },
  {
    id: "E3a",
    input: "HTTP_PROXY and HTTPS_PROXY set, and a service on this machine",
    result: "requested directly: loopback addresses use no proxy",
    outcome: "ok",
    command: "devices",
    cliOnly: true,
    environment: ({ elsewhere }) => ({
      HTTP_PROXY: elsewhere.origin,
      HTTPS_PROXY: elsewhere.origin,
      http_proxy: elsewhere.origin,
    }),
    arrange: ({ service }) => service.list(() => undefined),
    requests: LISTING,
  },
  {
    id: "E3b",
    input: "a proxy with a password that is not a valid URL",
    result: "refused; the password is not repeated",
    outcome: "usage",
    command: "devices",
    cliOnly: true,
    environment: ({ canaries }) => ({ HTTPS_PROXY: `ftp://me:${canaries.get("code")}@proxy.example` }),
    says: ["HTTPS_PROXY", "********"],
    requests: [],
  },
];

/** Settings, secret files, arguments and the environment. */
export const config: readonly HostileCase[] = [...files, ...secrets, ...rest];
