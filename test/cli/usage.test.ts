import { describe, expect, it } from "vitest";
import { linesOf, runCli } from "../helpers/cli.js";

const LIST = ["devices", "list", "--pool", "pool_x", "--base-url", "https://agentauth.example"];

const AT = "--base-url https://agentauth.example";
const LIST_AT = LIST.join(" ");
const SERVER = "https://mcp.example/mcp";
const WHOLE = "must be a whole number of at least";

// The complaints of the parser itself are in runtime/usage-error.test.ts.
describe("a wrong command line ends with exit 2, says what is wrong, and prints no data", () => {
  it.each<[string, string, string]>([
    [`status localhost:1/mcp`, 'no scheme; did you mean "https://localhost:1/mcp" or "http://localhost:1/mcp"?', ""],
    ["domains list --base-url a.example", '"a.example" has no scheme; did you mean "https://a.example"?', ""],
    ["help exit-code", 'there is no help for "exit-code"', "did you mean exit-codes?"],
    [`${LIST_AT} --offset -1`, `--offset "-1" ${WHOLE} 0`, "--help"],
    [`${LIST_AT} --page-size 1.5`, '--page-size "1.5" must be a whole number', "--help"],
    [`${LIST_AT} --limit 99999999999999999999`, "must be a whole number", "--help"],
    [`${LIST_AT} --concurrency 65`, `--concurrency "65" ${WHOLE} 1 and at most 64`, "--help"],
    ["sandbox start --port 99999", `--port "99999" ${WHOLE} 0 and at most 65535`, "--help"],
    [`${LIST_AT} --timeout 0`, '--timeout "0" must be a number of seconds above 0', "--help"],
    [`${LIST_AT} --timeout 0x10`, '--timeout "0x10" must be a number of seconds', "--help"],
    [`login ${SERVER} --wait nope`, '--wait "nope" is not a login id', `agentauth login ${SERVER} --no-wait --json`],
    [`login ${SERVER}?key=k --wait nope`, "is not a login id", "agentauth login <mcp_url> --no-wait --json"],
    ["login", "no MCP server is named", `agentauth login <mcp_url>, such as agentauth login ${SERVER}`],
    [`devices get dev_1 ${AT}`, "no pool is named", "agentauth devices get dev_1 --pool <pool_id>"],
    [`domains get dom_1 ${AT}`, "no account is named", "agentauth domains get dom_1 --account <account_id>"],
    [
      "config get pool",
      "pool is not set in profile default",
      "agentauth config set pool <value>; agentauth profile list",
    ],
    [
      "config get pool --profile nope",
      'there is no profile "nope" (--profile)',
      "agentauth config set base_url <url> --profile nope",
    ],
    [`${LIST_AT} --ca-file /nowhere/ca.pem`, '"/nowhere/ca.pem" cannot be read', "in PEM form: --ca-file <file>"],
    [`${LIST_AT} --ca-file /etc/hostname`, '--ca-file "/etc/hostname" contains no PEM certificate', ""],
    [`${LIST_AT} --sort titel`, '--sort "titel" is not an order', "did you mean title?"],
    [`${LIST_AT} --sort id:down`, '--sort "id:down" is not an order', "asc or desc"],
    [`${LIST_AT} --sort :asc`, '--sort ":asc" is not an order', "give a field"],
    [`${LIST_AT} --seen-after yesterday`, '--seen-after "yesterday" is not a time', "7d"],
    [`${LIST_AT} --columns id,foo`, '--columns: there is no field "foo"', "fields: id, title"],
    [
      `devices list ${AT}`,
      "no pool is named",
      "agentauth devices list --pool <pool_id>, or once for all: agentauth config set pool",
    ],
    [
      "domains list",
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL), no API token is set (AGENTAUTH_API_TOKEN), no account is named",
      "1. agentauth config set base_url <url>",
    ],
    [
      `domains list ${AT}`,
      "error: no account is named",
      "no operation lists accounts: the service's console shows the account id",
    ],
    ["pools list", "no domain is named", "agentauth pools list --domain <domain_id>"],
    ["domains list", "no account is named", "agentauth domains list --account <account_id>"],
    ["devices list --pool ", "no pool is named", "--pool <pool_id>"],
    ["devices list --pool a\nb", "--pool has a control character", ""],
    ["devices list --pool p", "no service is configured", "1. agentauth config set base_url <url>"],
    ["devices list --pool p --base-url nowhere", '--base-url "nowhere" is not an absolute URL', ""],
    ["devices list --pool p --base-url http://a.example", '"http://a.example" must begin with https://', ""],
    [
      `${LIST_AT} --profile stagin`,
      'there is no profile "stagin" (--profile)',
      "agentauth config set base_url <url> --profile stagin",
    ],
    ["api POST /x", 'the method "POST" is not supported', "GET"],
    ["api GET https://x.example/y", 'the path "https://x.example/y" is an absolute URL', "--base-url"],
    [
      `api GET /a/../b ${AT}`,
      'path "/a/../b" must begin with',
      "give only the path; pass parameters with -f name=value",
    ],
    ["api GET /x -f pool_id", '-f "pool_id" is not name=value', "pool_id=<pool_id>"],
    [`${LIST_AT} --proxy ftp://x`, '--proxy "ftp://x" is not an http:// or https:// address', ""],
    ["sandbox fault 503", "no sandbox is running", "agentauth sandbox start"],
  ])("%j", async (line, message, hint) => {
    const { code, stdout, stderr } = await runCli(line.split(" "));
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const [error = "", ...lines] = linesOf(stderr);
    const help = lines.map((text) => text.trim()).join("; ");
    expect(error).toMatch(/^error: /);
    expect(error).toContain(message);
    expect(help).toContain(hint);
    expect(help === "" || help.startsWith("hint: ")).toBe(true);
  });
});

it("refuses a profile that cannot be one", async () => {
  const { code, stderr } = await runCli([...LIST, "--profile", "a b"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('--profile "a b" is not a valid profile name')]);
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
  // Which words and variables ask for JSON is in execute.test.ts.
  it("also of the parser", async () => {
    const { code, stdout, stderr } = await runCli([...LIST, "--lmit", "-o", "json"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      error: {
        ...{ code: "usage", class: "usage", retryable: false, exit_code: 2 },
        ...{ message: "unknown option '--lmit'", hint: "did you mean --limit?" },
      },
    });
  });

  it("for every kind of command", async () => {
    const env = { AGENTAUTH_ERRORS: "json" };
    for (const line of [
      "nope",
      "devices nope",
      "config get nope",
      "sandbox fault 503",
      "help nope",
      "token u --json",
    ]) {
      const { code, stdout, stderr } = await runCli(line.split(" "), { env });
      expect([code, stdout, JSON.parse(stderr)]).toEqual([2, "", { error: expect.objectContaining({ exit_code: 2 }) }]);
    }
  });
});
