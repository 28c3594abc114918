import { describe, expect, it } from "vitest";
import { linesOf, runCli } from "../helpers/cli.js";

const LIST = ["devices", "list", "--pool", "pool_x", "--base-url", "https://agentauth.example"];

describe("a wrong command line ends with exit 2, says what is wrong, and prints no data", () => {
  it.each<[string, string[], string, string]>([
    [
      "a setting of a login at another command",
      ["mcp", "tools", "https://mcp.example/mcp", "--allow-private-network"],
      "unknown option '--allow-private-network'",
      "a login stores it: agentauth login https://mcp.example/mcp --allow-private-network",
    ],
    ["an unknown flag", [...LIST, "--lmit", "3"], "unknown option '--lmit'", "did you mean --limit?"],
    [
      "an unknown flag like none",
      [...LIST, "--zzzzzz"],
      "unknown option '--zzzzzz'",
      "see agentauth devices list --help",
    ],
    ["an unknown command", ["device", "list"], "unknown command 'device'", "did you mean devices?"],
    ...(
      [
        ["version", "agentauth --version"],
        ["auth", "agentauth login <mcp_url>"],
        ["auth token", "agentauth token <mcp_url>"],
        ["auth logout https://mcp.example/mcp", "agentauth logout https://mcp.example/mcp"],
        ["auth status", "agentauth status"],
        ["whoami", "agentauth status"],
        ["init", "agentauth config set base_url <url>"],
        ["ls", "agentauth devices list"],
        ["list", "agentauth devices list"],
        ["devices show dev_1", "agentauth devices get <device_id>"],
        ["pools show pool_1", "agentauth pools get <pool_id>"],
        ["domains show dom_1", "agentauth domains get <domain_id>"],
        ["tools https://mcp.example/mcp", "agentauth mcp tools https://mcp.example/mcp"],
        ["tools https://mcp.example/mcp?key=k", "agentauth mcp tools <mcp_url>"],
        ["call", "agentauth mcp call <mcp_url> <tool>"],
        ["refresh", "agentauth token <mcp_url> --force-refresh"],
        ["curl -H x", "agentauth request <mcp_url>"],
      ] as const
    ).map(([line, command]): [string, string[], string, string] => [
      `${line}, which is a command elsewhere`,
      line.split(" "),
      "unknown command '",
      `did you mean ${command}?`.replace("<url>?", "<url>, or agentauth demo?"),
    ]),
    [
      "a token as JSON",
      ["token", "https://mcp.example/mcp", "-o", "csv"],
      "unknown option '-o'",
      "did you mean --format json?",
    ],
    [
      "an MCP server without a scheme",
      ["status", "localhost:1/mcp"],
      'has no scheme; did you mean "https://localhost:1/mcp" or "http://localhost:1/mcp"?',
      "",
    ],
    [
      "a service without a scheme",
      ["domains", "list", "--base-url", "agentauth.example"],
      '--base-url "agentauth.example" has no scheme; did you mean "https://agentauth.example"?',
      "",
    ],
    ["an unknown verb", ["devices", "lst"], "unknown command 'lst'", "did you mean list?"],
    [
      "a value that an operand cannot have",
      ["completion", "bsh"],
      'shell "bsh" must be one of bash, zsh, fish, powershell',
      "did you mean bash?",
    ],
    ["an unknown topic", ["help", "exit-code"], 'there is no help for "exit-code"', "did you mean exit-codes?"],
    [
      "an unknown format",
      [...LIST, "-o", "jsn"],
      '--output "jsn" must be one of table, wide, plain, json,',
      "did you mean json?",
    ],
    ["a word for a number", [...LIST, "--limit", "x"], '--limit "x" must be a whole number of at least 1', "--help"],
    ["a limit of nothing", [...LIST, "--limit", "0"], '--limit "0" must be a whole number of at least 1', "--help"],
    ["a negative number", [...LIST, "--offset", "-1"], '--offset "-1" must be a whole number of at least 0', "--help"],
    ["a fraction", [...LIST, "--page-size", "1.5"], '--page-size "1.5" must be a whole number', "--help"],
    ["a huge number", [...LIST, "--limit", "99999999999999999999"], "must be a whole number", "--help"],
    [
      "too many at once",
      [...LIST, "--concurrency", "65"],
      '--concurrency "65" must be a whole number of at least 1 and at most 64',
      "--help",
    ],
    ["no time at all", [...LIST, "--timeout", "0"], '--timeout "0" must be a number of seconds above 0', "--help"],
    ["a hexadecimal time", [...LIST, "--timeout", "0x10"], '--timeout "0x10" must be a number of seconds', "--help"],
    [
      "a flag without its value",
      [...LIST, "--limit"],
      "option '--limit <n>' argument missing",
      "see agentauth devices list --help",
    ],
    [
      "a missing argument",
      ["devices", "get"],
      "missing required argument 'device_id'",
      "see agentauth devices get --help",
    ],
    [
      "a login that cannot have begun",
      ["login", "https://mcp.example/mcp", "--wait", "nope"],
      '--wait "nope" is not a login id',
      "agentauth login https://mcp.example/mcp --no-wait --json",
    ],
    [
      "a login at a URL with a query that cannot have begun",
      ["login", "https://mcp.example/mcp?key=k", "--wait", "nope"],
      '--wait "nope" is not a login id',
      "agentauth login <mcp_url> --no-wait --json",
    ],
    [
      "a device of no pool",
      ["devices", "get", "dev_1", "--base-url", "https://agentauth.example"],
      "no pool is named",
      "agentauth devices get dev_1 --pool <pool_id>",
    ],
    [
      "a domain of no account",
      ["domains", "get", "dom_1", "--base-url", "https://agentauth.example"],
      "no account is named",
      "agentauth domains get dom_1 --account <account_id>",
    ],
    [
      "a setting that is not there",
      ["config", "get", "pool"],
      "pool is not set in profile default",
      "agentauth config set pool <value>; agentauth profile list",
    ],
    [
      "a setting of a profile that is not there",
      ["config", "get", "pool", "--profile", "nope"],
      'there is no profile "nope" (--profile)',
      "agentauth config set base_url <url> --profile nope",
    ],
    [
      "a file of authorities that is not there",
      [...LIST, "--ca-file", "/nowhere/ca.pem"],
      '--ca-file "/nowhere/ca.pem" cannot be read',
      "in PEM form: --ca-file <file>",
    ],
    ["one word too many", ["devices", "list", "extra"], 'unexpected argument "extra"', "did you mean --pool extra?"],
    [
      "a word where none belongs",
      ["profile", "list", "extra"],
      'unexpected argument "extra"',
      "see agentauth profile list --help",
    ],
    [
      "a field that is not sorted by",
      [...LIST, "--sort", "titel"],
      '--sort "titel" is not an order',
      "did you mean title?",
    ],
    ["a direction that is none", [...LIST, "--sort", "id:down"], '--sort "id:down" is not an order', "asc or desc"],
    ["a sort of nothing", [...LIST, "--sort", ":asc"], '--sort ":asc" is not an order', "give a field"],
    ["a time that is none", [...LIST, "--seen-after", "yesterday"], '--seen-after "yesterday" is not a time', "7d"],
    ["an unknown column", [...LIST, "--columns", "id,foo"], '--columns: there is no field "foo"', "fields: id, title"],
    [
      "no pool",
      ["devices", "list", "--base-url", "https://agentauth.example"],
      "no pool is named",
      "agentauth devices list --pool <pool_id>, or once for all: agentauth config set pool",
    ],
    [
      "no service, no token and no account, in the order to set them",
      ["domains", "list"],
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL), no API token is set (AGENTAUTH_API_TOKEN), no account is named",
      "1. agentauth config set base_url <url>",
    ],
    [
      "no account, which no command finds",
      ["domains", "list", "--base-url", "https://agentauth.example"],
      "error: no account is named",
      "no operation lists accounts: the service's console shows the account id",
    ],
    [
      "a login without a server",
      ["login"],
      "no MCP server is named",
      "agentauth login <mcp_url>, such as agentauth login https://mcp.example/mcp",
    ],
    ["no domain", ["pools", "list"], "no domain is named", "agentauth pools list --domain <domain_id>"],
    ["no account", ["domains", "list"], "no account is named", "agentauth domains list --account <account_id>"],
    ["an empty pool", ["devices", "list", "--pool", ""], "no pool is named", "--pool <pool_id>"],
    ["an empty device", ["devices", "get", "", "--pool", "p"], "the device id is empty", ""],
    ["a pool with a line break", ["devices", "list", "--pool", "a\nb"], "--pool has a control character", ""],
    [
      "no service",
      ["devices", "list", "--pool", "p"],
      "no service is configured",
      "1. agentauth config set base_url <url>",
    ],
    ["an address that is none", [...LIST, "--base-url", "nowhere"], '--base-url "nowhere" is not an absolute URL', ""],
    [
      "http to another machine",
      [...LIST, "--base-url", "http://agentauth.example"],
      '--base-url "http://agentauth.example" must begin with https://',
      "",
    ],
    [
      "an unknown profile",
      [...LIST, "--profile", "stagin"],
      'there is no profile "stagin" (--profile)',
      "agentauth config set base_url <url> --profile stagin",
    ],
    ["a profile that cannot be", [...LIST, "--profile", "a b"], '--profile "a b" is not a valid profile name', ""],
    ["a method that is not there", ["api", "POST", "/x"], 'the method "POST" is not supported', "GET"],
    [
      "a whole address for a path",
      ["api", "GET", "https://x.example/y"],
      'the path "https://x.example/y" is an absolute URL',
      "--base-url",
    ],
    [
      "a path that climbs",
      ["api", "GET", "/a/../b", "--base-url", "https://agentauth.example"],
      'path "/a/../b" must begin with',
      "give only the path; pass parameters with -f name=value",
    ],
    ["half a field", ["api", "GET", "/x", "-f", "pool_id"], '-f "pool_id" is not name=value', "pool_id=<pool_id>"],
    [
      "a proxy that is none",
      [...LIST, "--proxy", "ftp://x"],
      '--proxy "ftp://x" is not an http:// or https:// address',
      "",
    ],
    ["authorities that are not there", [...LIST, "--ca-file", "/nowhere"], '--ca-file "/nowhere" cannot be read', ""],
    [
      "authorities that are none",
      [...LIST, "--ca-file", "/etc/hostname"],
      '--ca-file "/etc/hostname" contains no PEM certificate',
      "",
    ],
    [
      "a port that is none",
      ["sandbox", "start", "--port", "99999"],
      '--port "99999" must be a whole number of at least 0 and at most 65535',
      "--help",
    ],
    ["no sandbox to steer", ["sandbox", "fault", "503"], "no sandbox is running", "agentauth sandbox start"],
  ])("%s", async (_what, args, message, hint) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const [error = "", ...lines] = linesOf(stderr);
    const help = lines.map((line) => line.trim()).join("; ");
    expect(error).toMatch(/^error: /);
    expect(error).toContain(message);
    expect(help).toContain(hint);
    expect(help === "" || help.startsWith("hint: ")).toBe(true);
  });
});

it("names three commands, each on a line, to a list without any service", async () => {
  const { stderr } = await runCli(["devices", "list"]);
  const [, ...hint] = linesOf(stderr);
  expect(hint.map((line) => line.replace("hint:", "     "))).toEqual([
    "      1. agentauth config set base_url <url>",
    expect.stringMatching(/^ {6}2\. .*agentauth config set api_token -/),
    "      3. agentauth devices list --pool <pool_id>",
  ]);
});

describe("errors as JSON", () => {
  it.each<[string, string[], Record<string, string>]>([
    ["-o json", [...LIST, "--lmit", "-o", "json"], {}],
    ["-ojson", [...LIST, "--lmit", "-ojson"], {}],
    ["--output=ndjson", [...LIST, "--output=ndjson", "--lmit"], {}],
    ["--json", [...LIST, "--json", "--lmit"], {}],
    ["--format json", [...LIST, "--lmit", "--format", "json"], {}],
    ["-qo json", [...LIST, "--lmit", "-qo", "json"], {}],
    ["AGENTAUTH_ERRORS", [...LIST, "--lmit"], { AGENTAUTH_ERRORS: "json" }],
  ])("also of the parser, with %s", async (_what, args, env) => {
    const { code, stdout, stderr } = await runCli(args, { env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: "usage",
        class: "usage",
        message: "unknown option '--lmit'",
        hint: "did you mean --limit?",
        retryable: false,
        exit_code: 2,
      },
    });
  });

  it("with the format that a token has as JSON", async () => {
    const { stderr } = await runCli(["token", "https://mcp.example/mcp", "--json"]);
    expect(JSON.parse(stderr).error).toMatchObject({
      message: "unknown option '--json'",
      hint: "did you mean --format json?",
    });
  });

  it("not for what only looks like it", async () => {
    for (const args of [
      ["-o", "csv"],
      ["--title", "ndjson"],
      ["--", "--json"],
    ]) {
      expect((await runCli([...LIST, "--lmit", ...args])).stderr).toMatch(/^error: /);
    }
  });

  it("for every kind of command", async () => {
    const env = { AGENTAUTH_ERRORS: "json" };
    for (const args of [
      ["nope"],
      ["devices"].concat("nope"),
      ["config", "get", "nope"],
      ["sandbox", "fault", "503"],
      ["help", "nope"],
    ]) {
      const { code, stdout, stderr } = await runCli(args, { env });
      expect([code, stdout, JSON.parse(stderr)]).toEqual([2, "", { error: expect.objectContaining({ exit_code: 2 }) }]);
    }
  });
});
