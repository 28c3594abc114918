import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { MCP_HOSTS } from "../../../../../src/cli/clients/hosts.js";
import { COMMANDS } from "../../../../../src/cli/commands/all.gen.js";
import { buildProgram } from "../../../../../src/cli/program.js";
import { createPendingSaves } from "../../../../../src/cli/runtime/context.js";
import { processSignals } from "../../../../../src/cli/runtime/signals.js";
import { toUsageError } from "../../../../../src/cli/runtime/usage-error.js";
import { isAgentAuthError } from "../../../../../src/errors.js";
import { systemClock } from "../../../../../src/http/deadline.js";
import { Redactor } from "../../../../../src/redact.js";
import { temporaryFolder } from "../../../../helpers/folder.js";
import { createMemoryIo } from "../../../../helpers/memory-io.js";

const URL_OF_SERVER = "https://mcp.example.com/mcp";

/** Runs `mcp config` with the parser, in this process. */
async function config(args: readonly string[], env: Record<string, string> = {}) {
  const io = createMemoryIo({ env: { HOME: temporaryFolder(), XDG_CONFIG_HOME: temporaryFolder(), ...env } });
  const run = {
    io,
    signal: new AbortController().signal,
    signals: processSignals(process),
    argv: ["mcp", "config", ...args],
    redactor: new Redactor(),
    machine: { platform: "linux", folder: temporaryFolder() },
    pendingSaves: createPendingSaves(),
    clock: systemClock,
    now: Date.now,
    acquireProcess: () => {
      throw new Error("nothing is started here");
    },
  };
  await buildProgram(run, { text: "", error: "" }, { commands: COMMANDS }).run(run.argv);
  return { out: io.out(), err: io.err() };
}

async function refusal(args: readonly string[]) {
  const thrown = await config(args).then(
    () => undefined,
    (error: unknown) => error,
  );
  return isAgentAuthError(thrown) ? thrown : toUsageError(thrown as never);
}

const json = async (...args: string[]) => JSON.parse((await config(args)).out) as unknown;
const ARGS = ["mcp", "proxy", URL_OF_SERVER, "--profile", "default"];

describe("agentauth mcp config", () => {
  it.each(["claude-desktop", "cline", "cursor", "gemini-cli", "windsurf"])("prints mcpServers for %s", async (host) => {
    expect(await json(host, URL_OF_SERVER)).toEqual({
      mcpServers: { "mcp-example-com": { command: "agentauth", args: ARGS } },
    });
  });

  it("prints what claude-code, vscode, zed and opencode read", async () => {
    const stdio = { type: "stdio", command: "agentauth", args: ARGS };
    expect(await json("claude-code", URL_OF_SERVER, "--name", "a")).toEqual({ mcpServers: { a: stdio } });
    expect(await json("vscode", URL_OF_SERVER, "--name", "a")).toEqual({ servers: { a: stdio } });
    expect(await json("zed", URL_OF_SERVER, "--name", "a")).toEqual({
      context_servers: { a: { command: "agentauth", args: ARGS, env: {} } },
    });
    expect(await json("opencode", URL_OF_SERVER, "--name", "a")).toEqual({
      mcp: { a: { type: "local", command: ["agentauth", ...ARGS], enabled: true } },
    });
  });

  it("prints TOML for codex, which takes any address as it is", async () => {
    const { out } = await config(["codex", `${URL_OF_SERVER}?a="b\\c`, "--name", "a_b"], {
      AGENTAUTH_HOME: "/x\u007f",
    });
    expect(out).toBe(
      [
        "[mcp_servers.a_b]",
        'command = "agentauth"',
        'args = ["mcp","proxy","https://mcp.example.com/mcp?a=%22b\\\\c","--profile","default"]',
        "",
        "[mcp_servers.a_b.env]",
        'AGENTAUTH_HOME = "/x\\u007f"',
        "",
      ].join("\n"),
    );
  });

  it("prints YAML for goose", async () => {
    const { out } = await config(["goose", URL_OF_SERVER, "--name", "yes"]);
    expect(parse(out)).toEqual({
      extensions: {
        yes: { type: "stdio", name: "yes", enabled: true, cmd: "agentauth", args: ARGS, envs: {}, timeout: 300 },
      },
    });
  });

  it.each(Object.keys(MCP_HOSTS))("prints the snippet for %s alone, and says where it belongs", async (host) => {
    const { out, err } = await config([host, URL_OF_SERVER]);
    expect(out).toContain(URL_OF_SERVER);
    expect(out.endsWith("\n")).toBe(true);
    const [where, login] = err.split("\n");
    expect(where).toMatch(/^merge this into (?:[~/]\S|the settings of claude-desktop$)/);
    expect(login).toBe(`log in once: agentauth login ${URL_OF_SERVER} --profile default`);
  });

  it("names the login that is meant, and where logins are kept", async () => {
    const flags = ["--account-hint", "bob", "--command", "/opt/agentauth"];
    const { out, err } = await config(["cursor", URL_OF_SERVER, ...flags], { AGENTAUTH_STORE: "file" });
    expect(JSON.parse(out)).toEqual({
      mcpServers: {
        "mcp-example-com": {
          command: "/opt/agentauth",
          args: [...ARGS, "--account-hint", "bob"],
          env: { AGENTAUTH_STORE: "file" },
        },
      },
    });
    expect(err).toContain(`agentauth login ${URL_OF_SERVER} --profile default --account-hint bob\n`);
  });

  it.each([
    ["https://127.0.0.1:8443/mcp", "mcp-127-0-0-1"],
    ["https://[::1]/mcp", "mcp-1"],
    ["https://xn--bcher-kva.example/", "xn-bcher-kva-example"],
    [`https://${"a".repeat(60)}.example/`, "a".repeat(60)],
  ])("names the server of %s %s", async (url, name) => {
    expect(await json("cursor", url)).toEqual({ mcpServers: { [name]: expect.anything() } });
  });
});

describe("agentauth mcp config refuses", () => {
  it.each([
    ["curser", "did you mean cursor?"],
    ["Claude-Code", "did you mean claude-code?"],
    ["emacs", "see agentauth mcp config --help"],
    ["constructor", "see agentauth mcp config --help"],
  ])("the host %s, and names those that it knows", async (host, hint) => {
    const error = await refusal([host, URL_OF_SERVER]);
    expect(error).toMatchObject({ class: "usage", hint });
    expect(error.message).toContain(`must be one of ${Object.keys(MCP_HOSTS).join(", ")}`);
  });

  it.each([
    ["https://user:secret-1@mcp.example/mcp", "must not contain a user name or password"],
    ["https://mcp.example/mcp?api_key=secret-1", 'the parameter "api_key"'],
    ["https://mcp.example/mcp?x=1&Token=secret-1", 'the parameter "Token"'],
    ["https://mcp.example/mcp?accessTokens=secret-1", 'the parameter "accessTokens"'],
    ["https://mcp.example/mcp?k=a1B2c3D4e5F6g7H8i9J0secret-1", 'the parameter "k"'],
    ["http://mcp.example/mcp", "must begin with https://"],
    ["mcp.example", "has no scheme"],
  ])("the address %s, without repeating a secret", async (url, message) => {
    const error = await refusal(["cursor", url]);
    expect(error).toMatchObject({ class: "usage", message: expect.stringContaining(message) });
    expect(`${error.message} ${error.hint}`).not.toContain("secret-1");
  });

  it.each(
    "token key apikey secret password passwd pass pwd auth authorization bearer credential signature sig code jwt session".split(
      " ",
    ),
  )("the parameter %s, in each spelling", async (word) => {
    const Word = `${word[0]?.toUpperCase()}${word.slice(1)}`;
    for (const name of [word, `${word}s`, `my_${word}`, `x-${word.toUpperCase()}-y`, `my${Word}`, `a1${Word}`]) {
      expect(await refusal(["cursor", `https://mcp.example/mcp?${name}=x`])).toMatchObject({
        ...{
          class: "usage",
          hint: "leave it out: agentauth sends a token in a header; if it was a secret, replace it",
        },
        message: `the parameter "${name}" of the MCP server's URL looks like a secret, which must not be in a host's settings`,
      });
    }
    expect(JSON.stringify(await json("cursor", `https://mcp.example/mcp?x${word}y=1`))).toContain(`x${word}y`);
  });

  it.each([
    "https://mcp.example/mcp?tenant=acme-production-environment",
    "https://mcp.example/mcp?author=me&keyword=x&v=2026-07-28",
  ])("no harmless parameter, as in %s", async (url) => {
    expect(JSON.stringify(await json("cursor", url))).toContain(url);
  });

  it("names that do not fit", async () => {
    expect((await refusal(["cursor", URL_OF_SERVER, "--name", "a b"])).message).toContain('--name "a b" must be');
  });
});
