/** Every hint with a command, in a real home: the command is run as it is pasted, and leads further. */

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, onTestFinished, vi } from "vitest";
import { COMMANDS } from "../../src/cli/commands/all.gen.js";
import { buildMachineAccount } from "../../src/oauth/model/machine-grant.js";
import { writeSandboxState } from "../../src/profile/settings-file.js";
import { type Sandbox, type SandboxMachine, startSandbox } from "../../src/sandbox/index.js";
import { fileStore } from "../../src/store/file/file.js";
import { LockFiles } from "../../src/store/leases/file-leases.js";
import { bootClock, lockId, thisProcess } from "../../src/store/leases/lock-owner.js";
import * as scripts from "../../src/store/redis/scripts.js";
import { loginAtIdp, machineTest } from "../flow/machine-support.js";
import { FETCH_BROWSER } from "../flow/support.js";
import { type CliResult, type RunOptions, runCli, temporaryFolder } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";
import { sendJson, startServer, startSocketServer, until } from "../helpers/server.js";
import { ON_LINUX, ON_WINDOWS } from "../helpers/systems.js";
import { sendResult, startPlainServer } from "../mcp/plain-server.js";

const SRC = join(import.meta.dirname, "../../src");
const CERTIFICATE =
  /-----BEGIN CERTIFICATE.*/s.exec(
    readFileSync(join(import.meta.dirname, "../fixtures/self-signed.pem"), "utf8"),
  )?.[0] ?? "";
const it = machineTest({ devices: 3, dpop: "supported" });

/** What a situation is arranged with. */
interface Fixtures {
  readonly home: string;
  /** The MCP server of the sandbox. */
  readonly url: string;
  /** The service of the sandbox, as variables. */
  readonly service: Record<string, string>;
  /** Runs the program in the home of the situation. */
  run(args: readonly string[], options?: RunOptions): Promise<CliResult>;
  /** Logs in at the server. */
  logIn(...flags: string[]): Promise<unknown>;
  readonly sandbox: Sandbox;
  readonly machine: SandboxMachine;
  /** The first file below the home whose path matches. */
  file(pattern: RegExp): string;
}

interface Situation {
  readonly args: (fixtures: Fixtures) => readonly string[] | Promise<readonly string[]>;
  readonly env?: (fixtures: Fixtures) => Record<string, string> | Promise<Record<string, string>>;
  readonly arrange?: (fixtures: Fixtures) => unknown;
  readonly stdin?: string;
  /** Whether it runs until it is stopped. */
  readonly isServer?: boolean;
  /** Resolves when one that prints nothing has to be stopped. */
  readonly stop?: (fixtures: Fixtures) => Promise<void>;
}

const args =
  (...words: string[]) =>
  (fixtures: Fixtures) =>
    words.map((word) => word.replace("URL", fixtures.url));
const SERVICE = ({ service }: Fixtures) => service;
const withoutService = (...words: string[]): Situation => ({ args: args(...words) });
const atService = (...words: string[]): Situation => ({ args: args(...words), env: SERVICE });

/** Asks for a token of a machine at a server whose issuer refuses every one. */
async function tokenAtIssuer(error: string): Promise<string[]> {
  const { origin } = await startServer((response, { url, headers: { host } }) => {
    const issuer = `http://${host}/issuer`;
    if (url.includes("oauth-protected-resource"))
      return sendJson(response, { resource: `http://${host}/mcp`, authorization_servers: [issuer] });
    if (url === "/.well-known/oauth-authorization-server/issuer")
      return sendJson(response, { issuer, token_endpoint: `${issuer}/token`, response_types_supported: [] });
    if (url === "/issuer/token") return sendJson(response, { error }, 400);
    return response.writeHead(url === "/mcp" ? 401 : 404).end();
  });
  const client = ["--grant", "client-credentials", "--client-id", "x", "--issuer", `${origin}/issuer`];
  return ["token", `${origin}/mcp`, ...client];
}

/** Logs in at a server whose issuer registers no clients and lists no PKCE methods; with what its refusal says it works. */
async function loginAtClosedIssuer(): Promise<string[]> {
  const { origin } = await startServer((response, { url, headers: { host } }) => {
    const issuer = `http://${host}`;
    const { pathname, searchParams } = new URL(url, issuer);
    if (pathname === "/.well-known/oauth-protected-resource/mcp")
      return sendJson(response, { resource: `${issuer}/mcp`, authorization_servers: [issuer] });
    if (pathname === "/.well-known/openid-configuration") {
      const endpoints = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` };
      return sendJson(response, { issuer, ...endpoints, response_types_supported: ["code"] });
    }
    if (pathname === "/token") return sendJson(response, { access_token: "t", token_type: "Bearer" });
    if (pathname !== "/authorize") return response.writeHead(pathname === "/mcp" ? 401 : 404).end();
    const state = searchParams.get("state");
    return response.writeHead(302, { location: `${searchParams.get("redirect_uri")}?code=c&state=${state}` }).end();
  });
  return ["login", `${origin}/mcp`];
}

/** What a server of Redis answers to our scripts that takes every record and has none afterwards. */
const FORGETFUL: Readonly<Record<string, readonly string[]>> = {
  [scripts.CLAIM]: ["1", "1", "0"],
  [scripts.EXTEND]: ["1"],
  [scripts.PUT]: ["1", "0"],
  [scripts.RELEASE]: ["1"],
  [scripts.SCAN]: [""],
};

/** A store in such a server, as variables. @param role what `INFO` says of it */
async function forgetfulStore(role: "master" | "slave"): Promise<Record<string, string>> {
  const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
  const list = (texts: readonly string[]) => `*${texts.length}\r\n${texts.map(bulk).join("")}`;
  const replyTo = ([command = "", script = ""]: readonly string[]): string => {
    if (command === "HELLO") return `%1\r\n${bulk("proto")}:3\r\n`;
    if (command === "EVALSHA") return "-NOSCRIPT it is not there\r\n";
    if (command !== "EVAL") return "+OK\r\n";
    return list(script === scripts.HEALTH ? [String(Date.now()), `role:${role}\r\n`] : (FORGETFUL[script] ?? []));
  };
  const unread = new Map<object, string>();
  const { origin } = await startSocketServer((socket, bytes) => {
    let rest = (unread.get(socket) ?? "") + bytes;
    for (let command = commandAt(rest); command !== undefined; command = commandAt(rest)) {
      rest = rest.slice(command.length);
      socket.write(replyTo(command.words));
    }
    unread.set(socket, rest);
  });
  return {
    AGENTAUTH_STORE: "redis",
    AGENTAUTH_STORE_URL: origin.replace("http:", "redis:"),
    AGENTAUTH_STORE_KEYS: "none",
  };
}

/** The command that a text of the protocol of Redis begins with; undefined where its end has not come. */
function commandAt(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  while (words.length < Number(head[1])) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at));
    if (size === null) return undefined;
    at += size[0].length;
    const end = at + Number(size[1]);
    if (text.length < end + 2) return undefined;
    words.push(text.slice(at, end));
    at = end + 2;
  }
  return { words, length: at };
}

/** A document at a public address, which nock gives. */
const DOCUMENT = "https://client.example/agentauth/client.json";

/** Each row: what is wrong, and the command line that prints the hint. */
const SITUATIONS: Readonly<Record<string, Situation>> = {
  "no service": withoutService("devices", "list", "--pool", "p"),
  "no pool": atService("devices", "list"),
  "no domain": atService("pools", "list"),
  "no account": atService("domains", "list"),
  "no sandbox": withoutService("devices", "list", "--profile", "sandbox"),
  "a profile that does not exist": withoutService("devices", "list", "--profile", "nope"),
  "nothing set up": withoutService(),
  "an API token in a setting": withoutService("config", "set", "api_token", "secret"),
  "an address of a store in a setting": withoutService("config", "set", "store_url", "redis://127.0.0.1:1"),
  "keys in a setting": withoutService("config", "set", "store_keys", "secret"),
  "a setting that is not set": withoutService("config", "get", "pool"),
  "an API token from a terminal without prompts": { args: args("config", "set", "api_token", "-"), stdin: "two words" },
  "settings that hold nothing": {
    args: args("config", "list"),
    arrange: ({ home }) => writeFileSync(join(home, "config.json"), ""),
  },
  "settings that others can change": {
    args: args("config", "list"),
    arrange: ({ home }) => {
      writeFileSync(join(home, "config.json"), "{}");
      chmodSync(join(home, "config.json"), 0o666);
    },
  },
  "settings of another user": {
    args: args("config", "list"),
    arrange: ({ home }) => {
      writeFileSync(join(home, "config.json"), "{}");
      chownSync(join(home, "config.json"), 12_345, 12_345);
    },
  },
  "a file of a login that others can read": {
    args: args("token", "URL", "--no-login"),
    arrange: async (fixtures) => {
      await fixtures.logIn();
      chmodSync(fixtures.file(/grants.*\.json$/), 0o644);
    },
  },
  "a folder of logins that others can enter": {
    args: args("token", "URL", "--no-login"),
    arrange: async (fixtures) => {
      await fixtures.logIn();
      chmodSync(join(fixtures.home, "grants"), 0o755);
    },
  },
  "a file of a login that is broken": {
    args: args("token", "URL", "--no-login"),
    arrange: async (fixtures) => {
      await fixtures.logIn();
      writeFileSync(fixtures.file(/grants.*\.json$/), "{");
    },
  },
  "a folder of logins that is a link": {
    args: args("token", "URL", "--no-login"),
    arrange: ({ home }) => symlinkSync(temporaryFolder(), join(home, "grants")),
  },
  "a policy that others can change": {
    args: ({ home }) => ["broker", "--config", join(home, "policy.json"), "--check"],
    arrange: ({ home }) => {
      writeFileSync(join(home, "policy.json"), "{}");
      chmodSync(join(home, "policy.json"), 0o666);
    },
  },
  "a policy that is none": {
    args: ({ home }) => ["broker", "--config", join(home, "policy.json"), "--check"],
    arrange: ({ home }) => writeFileSync(join(home, "policy.json"), "x", { mode: 0o600 }),
  },
  "a broker without a policy": withoutService("broker"),
  "no login": withoutService("token", "URL", "--no-login"),
  "no login, of another account": withoutService("token", "URL", "--no-login", "--account-hint", "ann"),
  "no login, in the status": withoutService("status"),
  "no login at a server, in the status": withoutService("status", "URL"),
  "a login without a server": withoutService("login"),
  "a scope that is missing": {
    args: args("token", "URL", "--no-login", "--scope", "admin"),
    arrange: ({ logIn }) => logIn(),
  },
  "the second step of no login": withoutService("login", "URL", "--wait", "nope"),
  "the second step of a login that is gone": withoutService("login", "URL", "--wait", "abcdefghijkl"),
  "a login of a machine grant": withoutService(
    "login",
    "URL",
    "--account-hint",
    buildMachineAccount("client_credentials", "x"),
  ),
  "a stored login at a server that is open now": {
    args: async ({ home }) => {
      const { url } = await startPlainServer(({ id }, response) => sendResult(response, id, { tools: [] }));
      const grant = madeGrant({ server: url, resource: url, requestedScope: undefined });
      const tokens = { ...grant.tokens, refreshToken: undefined, expiresAt: 1, obtainedAt: 0 };
      await fileStore(home).save({ ...grant, tokens }, undefined);
      return ["mcp", "tools", url, "--no-login"];
    },
  },
  "a server without metadata": {
    args: async () => ["login", (await startServer((response) => response.writeHead(401).end())).origin],
  },
  "a server without metadata, in the discovery": {
    args: async () => ["discover", (await startServer((response) => response.writeHead(401).end())).origin],
  },
  "an issuer without metadata": {
    args: async () => {
      const { origin } = await startServer((response, { url }) => {
        if (url.includes("protected-resource"))
          sendJson(response, { resource: origin, authorization_servers: [`${origin}/as`] });
        else response.writeHead(url === "/" ? 401 : 404).end();
      });
      return ["login", origin];
    },
  },
  "an issuer that exchanges no tokens": {
    args: args("exchange", "URL", "--audience", "https://a.example"),
    arrange: ({ logIn }) => logIn(),
  },
  "a client with a secret at an issuer that is unknown": {
    args: args("token", "URL", "--client-id", "x", "--no-login", "--grant", "client-credentials"),
    env: () => ({ AGENTAUTH_CLIENT_SECRET: "secret" }),
  },
  "a company login": { args: ({ machine }) => loginAtIdp(machine) },
  "a company login without the client of a server": {
    args: args("mcp", "tools", "URL", "--no-login"),
    arrange: ({ run, machine }) => run(loginAtIdp(machine)),
  },
  "a variable that nothing reads": { args: args("doctor"), env: () => ({ AGENTAUTH_ZEBRA: "x" }) },
  "a setting that is wrong, at the doctor": {
    args: args("doctor"),
    env: () => ({ AGENTAUTH_BASE_URL: "planted:pass/word@host" }),
  },
  "a keychain that files may replace": {
    args: args("doctor"),
    // The keychain of this machine is not asked.
    env: () => ({ AGENTAUTH_STORE: "keyring", AGENTAUTH_NO_INPUT: "1" }),
    arrange: ({ run }) => run(["config", "set", "store_fallback", "file"]),
  },
  "an AI agent that lists the commands": { args: args("commands"), env: () => ({ AGENTAUTH_AGENT: "x" }) },
  "an issuer that does not take the proof of a key": {
    args: () => tokenAtIssuer("invalid_dpop_proof"),
    env: () => ({ AGENTAUTH_CLIENT_SECRET: "secret" }),
  },
  "an issuer that does not do the grant": {
    args: () => tokenAtIssuer("unsupported_grant_type"),
    env: () => ({ AGENTAUTH_CLIENT_SECRET: "secret" }),
  },
  "a stored login, which its issuer knows, at a server that is open now": {
    args: async ({ home, logIn }) => {
      await logIn();
      const { url } = await startPlainServer(({ id }, response) => sendResult(response, id, { tools: [] }));
      const [grant = madeGrant()] = await fileStore(home).list();
      const tokens = { ...grant.tokens, refreshToken: undefined, expiresAt: 1 };
      await fileStore(home).save({ ...grant, server: url, resource: url, tokens }, undefined);
      return ["mcp", "tools", url, "--no-login"];
    },
  },
  "settings that a stopped process holds": {
    args: args("config", "set", "pool", "p"),
    arrange: async ({ home }) => {
      const child = spawn("sh", ["-c", "kill -STOP $$"], { stdio: "ignore" });
      onTestFinished(() => void child.kill("SIGKILL"));
      const { pid = 0 } = child;
      await until(() => readFileSync(`/proc/${pid}/stat`, "utf8").includes(") T "));
      const started = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19] ?? "";
      const files = new LockFiles(join(home, "claims"));
      const name = createHash("sha256").update("settings file").digest("hex").slice(0, 40);
      const attempt = { name, number: 1, id: lockId() };
      const record = {
        id: attempt.id,
        holder: { ...thisProcess(), pid, started },
        at: Date.now(),
        deadline: bootClock() + 10_000,
        duration: 10_000,
        extend: false,
      };
      // The patience of the command is 20 seconds: the clock of the locks makes them one.
      const { bigint } = process.hrtime;
      const clock = vi.spyOn(process.hrtime, "bigint").mockImplementation(() => bigint() * 20n);
      onTestFinished(() => clock.mockRestore());
      files.take(attempt, record, undefined);
      files.commit(attempt);
    },
  },
  "an engine that is a replica, at the doctor": { args: args("doctor"), env: () => forgetfulStore("slave") },
  "an engine without keys, at the doctor": { args: args("doctor"), env: () => forgetfulStore("master") },
  "an engine that keeps nothing": {
    args: args("login", "URL", "--browser", FETCH_BROWSER),
    env: () => forgetfulStore("master"),
  },
  "items without an id": {
    args: ({ sandbox }) => ["devices", "list", "--pool", sandbox.ids.pool, "-o", "id"],
    env: SERVICE,
    arrange: ({ sandbox }) => void sandbox.faults.add({ kind: "missing-fields", fields: ["id"], times: 0 }),
  },
  "a machine grant at a server without metadata": {
    args: async () => {
      const { origin } = await startServer((response) => response.writeHead(401).end());
      return ["token", origin, "--grant", "client-credentials", "--client-id", "x", "--issuer", "https://a.example"];
    },
    env: () => ({ AGENTAUTH_CLIENT_SECRET: "secret" }),
  },
  "a machine grant at a server without metadata and an issuer that is unknown": {
    args: async () => {
      const { origin } = await startServer((response) => response.writeHead(401).end());
      return ["token", origin, "--grant", "client-credentials", "--client-id", "x"];
    },
    env: () => ({ AGENTAUTH_CLIENT_SECRET: "secret" }),
  },
  "a document of another client": {
    args: args("client", "document", "--check", DOCUMENT),
    arrange: async () => {
      const { default: nock } = await import("nock");
      if (!nock.isActive()) nock.activate();
      onTestFinished(() => {
        nock.cleanAll();
        nock.restore();
      });
      nock(new URL(DOCUMENT).origin).get(new URL(DOCUMENT).pathname).reply(200, { client_id: "x" });
    },
  },
  "an order that is not applied": {
    args: args("devices", "list", "--pool", "p", "--sort", "title"),
    env: async () => {
      const pagination = { item_count: 2, page_size: 25, page_offset: 0, next_page_offset: null };
      const summaries = ["a", "b"].map((id) => ({ id, type: "device", pool_id: "p", title: id, status: "active" }));
      const page = { status: "success", summaries, pagination, sorting: { field: "id", direction: "asc" } };
      const { origin } = await startServer((response) => sendJson(response, page));
      return { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    },
  },
  "a token that belongs to another address": {
    args: args("config", "set", "base_url", "https://other.example"),
    arrange: async ({ run }) => {
      await run(["config", "set", "base_url", "https://one.example"]);
      await run(["config", "set", "api_token", "env:TOKEN"]);
    },
  },
  "a second sandbox": {
    args: args("sandbox", "start"),
    arrange: async ({ home }) => {
      const other = await startSandbox({ devices: 1 });
      onTestFinished(() => other.close());
      const { baseUrl, apiToken, controlToken, mcpUrl, ids } = other;
      const child = spawn("sleep", ["600"], { stdio: "ignore" });
      onTestFinished(() => void child.kill());
      const { pid = 0 } = child;
      const state = { pid, base_url: baseUrl, api_token: apiToken, control_token: controlToken, mcp_url: mcpUrl };
      const { account: account_id, domain: domain_id, pool: pool_id } = ids;
      writeSandboxState(home, { ...state, account_id, domain_id, pool_id });
    },
  },
  "a sandbox that starts": { args: args("sandbox", "start"), isServer: true },
  "the doctor without settings": withoutService("doctor"),
  "the doctor without requests to the service": atService("doctor"),
  "a login that no one finishes": withoutService("login", "URL", "--browser", "none", "--login-timeout", "1"),
  "a login that was handed over": {
    args: ({ url }) => {
      const target = join(temporaryFolder(), "credential.json");
      return ["login", url, "--browser", FETCH_BROWSER, `--hand-over=${target}`];
    },
  },
  "no login that was handed over": { ...withoutService("logout", "--hand-over", "-"), stdin: "{}" },
  "another issuer": withoutService("login", "URL", "--issuer", "https://other.example"),
  "the server by another name": {
    args: ({ url }) => ["login", url.replace("127.0.0.1", "localhost"), "--browser", "none"],
  },
  "an exec without a server": withoutService("exec", "--", "true"),
  "an exec without dashes": withoutService("exec", "URL", "true"),
  "an exec without a command": withoutService("exec", "URL"),
  "an exec with a broker and a login": withoutService("exec", "--broker", "mcp=URL", "--login", "--", "true"),
  "an exec with a broker and a server": withoutService("exec", "--broker", "mcp=URL", "URL", "--", "true"),
  "an exec with a broker and no command": withoutService("exec", "--broker", "mcp=URL"),
  "a token bound to a key": {
    args: args("exec", "URL", "--", "true"),
    arrange: ({ run, url }) => run(["login", url, "--dpop", "required", "--browser", FETCH_BROWSER]),
  },
  "the token of a server that is open": {
    args: async () => ["token", (await startPlainServer(() => undefined)).url, "--no-login"],
  },
  "a grant without its client": withoutService("token", "URL", "--grant", "client-credentials"),
  "a tool that fails": { args: args("mcp", "call", "URL", "echo"), arrange: ({ logIn }) => logIn() },
  "a document without an address": withoutService("client", "document"),
  "a document that is printed": withoutService(
    "client",
    "document",
    "--client-metadata-url",
    "https://a.example/client.json",
  ),
  "a command that is none": withoutService("commands", "nope"),
  "a key ring whose path is not named": withoutService("store", "keys"),
  "no key ring": {
    args: args("status"),
    env: () => ({ AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_URL: "redis://127.0.0.1:1" }),
  },
  "a key ring that is none": {
    args: args("status"),
    env: () => ({
      AGENTAUTH_STORE: "redis",
      AGENTAUTH_STORE_URL: "redis://127.0.0.1:1",
      AGENTAUTH_STORE_KEYS: "file:/dev/null",
    }),
  },
  "no address of a store": { args: args("status"), env: () => ({ AGENTAUTH_STORE: "redis" }) },
  "a store that does not answer": {
    args: args("status"),
    env: () => ({ AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_URL: "redis://127.0.0.1:1", AGENTAUTH_STORE_KEYS: "none" }),
  },
  "the health of no engine": withoutService("store", "health"),
  "a copy to nowhere": withoutService("store", "copy"),
  "a logout without a server": withoutService("logout"),
  "a logout of all and one": withoutService("logout", "--all", "--account-hint", "ann"),
  "a sandbox that does not run": withoutService("sandbox", "stop"),
  "faults of no sandbox": withoutService("sandbox", "fault", "list"),
  "machines of no sandbox": withoutService("sandbox", "machine"),
  "options of a sandbox that are none": {
    args: ({ home }) => ["sandbox", "start", "--options", join(home, "options.json")],
    arrange: ({ home }) => writeFileSync(join(home, "options.json"), "[]"),
  },
  "options of a sandbox that are not there": withoutService("sandbox", "start", "--options", "/nowhere"),
  "a secret as a flag": withoutService("devices", "list", "--api-token", "x"),
  "an address of a store as a flag": withoutService("status", "--store-url", "x"),
  "keys as a flag": withoutService("status", "--store-keys", "x"),
  "a code as a flag": withoutService("login", "URL", "--code", "x"),
  "a refresh token as a flag": withoutService("login", "URL", "--refresh-token", "x"),
  "a password as a flag": withoutService("login", "URL", "--password", "x"),
  "a setting of a login at another command": withoutService("mcp", "tools", "URL", "--redirect-port", "3000"),
  "an MCP host that gets an entry": withoutService("mcp", "add", "cursor", "URL"),
  "an issuer without registration and PKCE": { args: loginAtClosedIssuer },
  "an MCP host that has the name": {
    args: args("mcp", "add", "cursor", "http://127.0.0.1:9/mcp", "--name", "x"),
    arrange: ({ run, url }) => run(["mcp", "add", "cursor", url, "--name", "x"]),
  },
  "an MCP host with settings that are broken": {
    args: args("mcp", "add", "cursor", "URL"),
    arrange: async ({ run, url, file }) => {
      await run(["mcp", "add", "cursor", url]);
      writeFileSync(file(/\.cursor.*\.json$/), "{");
    },
  },
  "an MCP host with settings that are read-only": {
    args: args("mcp", "add", "cursor", "http://127.0.0.1:9/mcp", "--name", "y"),
    arrange: async ({ run, url, file }) => {
      await run(["mcp", "add", "cursor", url]);
      chmodSync(file(/\.cursor.*\.json$/), 0o444);
    },
  },
  "an MCP host with settings that are a link to nothing": {
    args: args("mcp", "add", "cursor", "URL"),
    arrange: ({ home }) => {
      mkdirSync(join(home, ".cursor"));
      symlinkSync("/nowhere/at/all", join(home, ".cursor", "mcp.json"));
    },
  },
  "an MCP host without settings for a project": withoutService(
    "mcp",
    "add",
    "claude-desktop",
    "URL",
    "--scope",
    "project",
  ),
  "an MCP host without the entry": withoutService("mcp", "remove", "cursor"),
  "a proxy whose login is pasted": withoutService("mcp", "proxy", "URL", "--flow", "paste"),
  "a client certificate without its key": {
    args: ({ home }) => ["devices", "list", "--pool", "p", "--client-cert", join(home, "cert.pem")],
    env: SERVICE,
    arrange: ({ home }) => writeFileSync(join(home, "cert.pem"), CERTIFICATE),
  },
  "a key without its certificate": {
    args: ({ home }) => ["devices", "list", "--pool", "p", "--client-key", join(home, "key.pem")],
    env: SERVICE,
    arrange: ({ home }) => writeFileSync(join(home, "key.pem"), "x", { mode: 0o600 }),
  },
  ...Object.fromEntries(
    [
      ["auth", "login", "URL"],
      ["auth", "logout", "URL"],
      ["auth", "status"],
      ["auth", "token", "URL"],
      ["call", "URL", "whoami"],
      ["config", "show"],
      ["curl", "URL"],
      ["devices", "show", "d"],
      ["domains", "show", "d"],
      ["pools", "show", "p"],
      ["init"],
      ["list"],
      ["mcp", "install"],
      ["refresh", "URL"],
      ["tools", "URL"],
      ["version"],
      ["whoami"],
    ].map((words) => [`words of others: ${words[0]} ${words[1] ?? ""}`, atService(...words)]),
  ),
};

/** What a command ends at in a sentence, where no mark ends it. */
const PROSE =
  / (?:\((?:add|with|Ctrl)|again|and |check|disables?|examines|finds|gets|has|in order|is|it is|lists|makes?|needs|once|or |prints?|prove|reads|sends?|sets|shows?|starts|stores|such as|that|the |then|to |with(?:out)? |works|accepts|asks|checks|disables|of (?:this|his))\b.*$/s;
const SYSTEM = /^(?:sudo )?(?:chmod|chown|mv|rm|kill) /;

/** The commands in a text, as a user copies them. */
function commandsIn(text: string): string[] {
  return text
    .replaceAll("then set ", "then ")
    .split(
      / {2,}|(?:^|[;:.?]|,| - )\s+(?:or |and |then |if that is so )?|(?:^|\s)(?:(?:Run:|run|after|hint:|did you mean|error:|make one with|reads a token)\s)+|\d\. |\n|; | or (?=agentauth)| with (?=agentauth)/,
    )
    .map((part) => part.trim())
    .filter((part) => /^agentauth [a-z]/.test(part) || SYSTEM.test(part))
    .map((part) => part.replace(PROSE, "").replace(/[.,?]$/, ""))
    .map((part) => part.replace(/^([^(]*)\)$/, "$1"));
}

/** What stands for a placeholder: something that is there. */
function filled(
  command: string,
  { home, url, service, ids }: Fixtures & { ids: Readonly<Record<string, string>> },
): string {
  const values: Readonly<Record<string, string>> = {
    ...ids,
    mcp_url: url,
    url: service["AGENTAUTH_BASE_URL"] ?? "",
    path: join(home, "a-file"),
    file: join(home, "a-file"),
    value: "x",
    host: "cursor",
    tool: "whoami",
    command: "echo",
    name: "mcp",
    encoding: "deep",
    client_id: "x",
    seconds: "5",
    scopes: "read",
    subcommand: "list",
    "your host": "a.example",
    port: "3456",
    policy: "auto",
  };
  return command
    .replace("commands <command>", "commands status")
    .replace(/\s\[[^\]]*\]/g, "")
    .replace(/'?<([\w ]+)>'?/g, (placeholder, name: string) => values[name] ?? placeholder);
}

/** Stops what runs until it is stopped. */
const UNTIL_READY = { signalAfter: { characters: 1, signal: "SIGINT" } } as const;

/** Everything that the situations have printed. */
const printed: string[] = [];

describe.skipIf(ON_WINDOWS)("the command of a hint leads further", () => {
  const isRoot = process.getuid?.() === 0;
  const possible = Object.entries(SITUATIONS).filter(
    ([name]) => (isRoot || !name.includes("another user")) && (ON_LINUX || !name.includes("stopped process")),
  );
  it.for(possible)("%s", { timeout: 40_000 }, async ([, situation], { harness, machine, url }) => {
    const user = harness.user();
    const { home } = user;
    const { sandbox } = harness;
    const service = { AGENTAUTH_BASE_URL: sandbox.baseUrl, AGENTAUTH_API_TOKEN: sandbox.apiToken };
    const base = { AGENTAUTH_HOME: home, AGENTAUTH_ERRORS: "json", HOME: home };
    const fixtures: Fixtures = {
      home,
      url,
      service,
      sandbox,
      machine,
      run: (words, options = {}) => runCli(words, { ...options, env: { ...base, ...options.env } }),
      logIn: (...flags) => user.logIn(...flags),
      file: (pattern) => {
        const found = readdirSync(home, { recursive: true, encoding: "utf8" }).find((name) => pattern.test(name));
        if (found === undefined) throw new Error(`no file ${pattern}`);
        return join(home, found);
      },
    };
    await situation.arrange?.(fixtures);
    const env = (await situation.env?.(fixtures)) ?? {};
    const words = await situation.args(fixtures);
    const stdin = situation.stdin ?? "";
    const stop = new AbortController();
    void situation.stop?.(fixtures).then(() => stop.abort());
    const options = { env, stdin, signal: stop.signal, ...(situation.isServer && UNTIL_READY) };
    const first = await fixtures.run(words, options);
    sandbox.faults.clear();
    const text = hintText(first);
    printed.push(text);
    const before = messageOf(first);
    const { account: account_id, domain: domain_id, pool: pool_id } = sandbox.ids;
    const ids = { account_id, domain_id, pool_id, device_id: sandbox.data.device(pool_id, 0)?.id ?? "" };
    for (const command of commandsIn(text).map((one) => filled(one, { ...fixtures, ids }))) {
      expect(command, text).not.toMatch(/<[a-z_ ]+>/);
      if (SYSTEM.test(command)) {
        const { status, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8" });
        expect([command, status, stderr]).toEqual([command, 0, ""]);
        const again = await fixtures.run(words, options);
        expect(again.code === 0 || messageOf(again) !== before, command).toBe(true);
        continue;
      }
      const result = await paste(command, fixtures, env);
      const shows = /^(?:discover|doctor|status)\b/.test(command.slice("agentauth ".length)) && result.stdout !== "";
      expect(
        // A report has the message that its hint must not lead to again.
        result.code === 0 || shows || result.code === 130 || !before.includes(messageOf(result)),
        `${command}: ${result.stderr}`,
      ).toBe(true);
      // The parser knows the command and its flags.
      expect(result.stderr, command).not.toMatch(
        /unknown (?:command|option)|missing required argument|unexpected argument/,
      );
    }
  });

  it("for every hint with a command in the sources", () => {
    const all = printed.join("\n");
    // Each form of a command of the system, of platform/shell.ts.
    const modes = ["chmod 600 ", "chmod 700 ", "chmod go-w ", "chmod u+w "];
    for (const form of [...modes, "mv ", "rm ", " < token.txt"]) expect(all).toContain(form);
    if (ON_LINUX) expect(all).toContain("kill -CONT ");
    if (isRoot) expect(all).toContain("chown 0 ");
    const missing = hintsInSources().filter(({ pattern }) => !pattern.test(all));
    expect(missing.map(({ at }) => at).sort()).toEqual(Object.values(NOT_FOLLOWED).flat().sort());
  });
});

/** Runs a command as a shell splits it into words. */
function paste(command: string, { run, home }: Fixtures, env: Record<string, string>): Promise<CliResult> {
  const [line = "", input] = command.split(" < ");
  const script = `agentauth() { printf '%s\\0' "$@"; }\n${line}`;
  const { stdout, stderr } = spawnSync("sh", ["-c", script], { encoding: "utf8", cwd: home });
  if (stderr !== "") throw new Error(`the shell: ${stderr} (${command})`);
  const words = stdout.split("\0").slice(0, -1);
  const isLogin = words[0] === "login" && !words.some((word) => /^--(?:browser|flow|no-wait)$/.test(word));
  const isServer = words[0] === "demo" || (words[0] === "sandbox" && words[1] === "start");
  const limit = words[0] === "login" && !words.includes("--login-timeout") ? ["--login-timeout", "2"] : [];
  return run([...words, ...(isLogin ? ["--browser", FETCH_BROWSER] : []), ...limit], {
    env,
    stdin: input === undefined ? "" : "a-token\n",
    ...(isServer && UNTIL_READY),
  });
}

/** What a run says beside its output, with the hint of an error as text. */
function hintText({ stdout, stderr }: CliResult): string {
  const lines = `${stderr}\n${stdout}`.split("\n").map((line) => {
    const error = line.startsWith('{"error"') ? (JSON.parse(line) as { error: { hint?: string } }).error : undefined;
    return error === undefined ? line : `hint: ${error.hint ?? ""}`;
  });
  return lines.join("\n");
}

/** The message of an error; of a report that ends with an exit code, what it prints. */
function messageOf({ stdout, stderr }: CliResult): string {
  const message = /"message":("(?:[^"\\]|\\.)*")/.exec(stderr)?.[1];
  return message === undefined ? `${stdout}${stderr}` : (JSON.parse(message) as string);
}

/** The hints that no situation prints here; lab/wine/run.mjs and test/store/postgres/server.process.test.ts follow them. */
const NOT_FOLLOWED: Readonly<Record<string, readonly string[]>> = {
  Windows: [
    "cli/clients/token-formats.ts: use --format raw, or agentauth exec",
    "cli/config/home-access.ts: agentauth doctor shows who can read it",
  ],
  PostgreSQL: ["cli/runtime/hints.ts: run the SQL that agentauth store sql prints on this database"],
};

/** What names commands and is no hint: declarations, scripts for shells, pages, and what `demo` prints as it goes. */
const NO_HINTS =
  /command\.ts$|^cli\/runtime\/help\.ts$|^cli\/commands\/(?:completion\/run|demo\/\w+|report\/page)\.ts$|^store\/postgres\/store-sql/;

const NAMES = new RegExp(`\\bagentauth (?:(?:${COMMANDS.flatMap(({ names }) => names).join("|")})\\b|$)`);

/** Every text in the sources that names a command of ours, as a pattern of what it prints. */
function hintsInSources(): { at: string; pattern: RegExp }[] {
  const modules = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && !NO_HINTS.test(path),
  );
  return modules.flatMap((path) => {
    const source = ts.createSourceFile(path, readFileSync(join(SRC, path), "utf8"), ts.ScriptTarget.Latest, true);
    const found: { at: string; pattern: RegExp }[] = [];
    const visit = (node: ts.Node): void => {
      const parts = partsOf(node);
      if (parts !== undefined && NAMES.test(parts.join(""))) {
        const fixed = parts
          .flatMap((part) => part.split(/<[\w ]+>/))
          .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
        found.push({ at: `${path}: ${parts.join("…")}`, pattern: new RegExp(fixed.join("[^\n]*")) });
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return found;
  });
}

/** The fixed parts of a literal or a template; undefined for anything else. */
function partsOf(node: ts.Node): string[] | undefined {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (!ts.isTemplateExpression(node)) return undefined;
  return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
}
