import { describe, expect, it } from "vitest";
import { findNearest } from "../../../../src/http/suggest.js";
import { SERVER_SHAPES } from "../../../../src/sandbox/vendors/catalogue.gen.js";
import { collect, runCli, startCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { startOwnSandbox } from "./support.js";

const IDS = SERVER_SHAPES.map(({ id }) => id);

describe("sandbox start --like", () => {
  it("prints the MCP server, and the command that logs in there", async () => {
    const sandbox = await startOwnSandbox(["--devices", "1", "--like", "github"]);
    const { base_url, mcp_url, like, login_command } = sandbox.ready as unknown as Record<string, string>;
    expect({ mcp_url, like }).toEqual({ mcp_url: `${base_url}/mcp/`, like: "github" });
    expect(login_command).toMatch(
      /^AGENTAUTH_CLIENT_SECRET=your-secret agentauth login http:\/\/127\.0\.0\.1:\d+\/mcp\/ --client-id your-client --issuer http:\/\/127\.0\.0\.1:\d+\/login\/oauth$/,
    );
    expect(await sandbox.stop()).toBe(143);
  });

  it.each([
    ["gitlab", "to log in: agentauth login http://127.0.0.1:"],
    ["magnific", "logins stay refused: a document of another resource must not be used (RFC 9728 section 3.3)"],
  ])("says for %s on stderr what comes next", async (vendor, text) => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const run = startCli(["sandbox", "start", "--devices", "1", "--like", vendor], { env });
    const [out, err] = [collect(run.stdout), collect(run.stderr)];
    await until(() => err().includes(text));
    expect(out()).toMatch(/^sandbox ready at .*, MCP server http:\/\/127\.0\.0\.1:\d+\/\S+\)\n$/);
    run.kill("SIGTERM");
    await until(() => run.exitCode !== null);
  });

  it("refuses an unknown name with the nearest ones", async () => {
    const { code, stdout, stderr } = await runCli(["sandbox", "start", "--like", "atlasian"], {
      env: { AGENTAUTH_HOME: temporaryFolder() },
    });
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr:
        'error: --like "atlasian" is not a recorded server\n' +
        "hint: the nearest names are atlassian, atlassian-v1, asana; all of them: agentauth sandbox vendors\n",
    });
  });

  it("ranks names that contain the word first", () => {
    expect(findNearest("entra", IDS, 3)).toEqual(["entra", "entra-admin-consent", "entra-organizations"]);
    expect(findNearest("Google", IDS, 1)).toEqual(["google-workspace"]);
  });
});

describe("sandbox vendors", () => {
  it("lists every shape with its source and its command", async () => {
    const { code, stdout } = await runCli(["sandbox", "vendors", "--json"]);
    const rows = JSON.parse(stdout) as Record<string, unknown>[];
    expect([code, rows.map(({ id }) => id)]).toEqual([0, IDS]);
    expect(rows.find(({ id }) => id === "cognito")).toEqual({
      id: "cognito",
      title: "Amazon Cognito",
      about: "The metadata do not list PKCE, which the server has, and clients cannot register.",
      date: "2025-12-07",
      source: "https://github.com/anthropics/claude-code/issues/13275",
      by_default: false,
      command:
        "AGENTAUTH_CLIENT_SECRET=your-secret agentauth login https://mcp.cognito.example/mcp --client-id your-client --issuer https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE --allow-missing-pkce-metadata",
    });
    expect(rows.find(({ id }) => id === "stripe")).not.toHaveProperty("source");
    expect(rows.find(({ id }) => id === "magnific")).toMatchObject({ refused: expect.stringContaining("RFC 9728") });
  });

  it("is text in a pipe, and a table with more columns where it is wide", async () => {
    const headings = async (format: string) =>
      (await runCli(["sandbox", "vendors", "-o", format])).stdout.split("\n")[0];
    expect(await headings("table")).toMatch(/^VENDOR +RECORDED +DEFAULT +COMMAND *$/);
    expect(await headings("wide")).toMatch(/^VENDOR +RECORDED +DEFAULT +COMMAND +TITLE +SOURCE +ABOUT *$/);
    expect(await headings("csv")).toBe("id,date,by_default,command,title,source,about\r");
    const { stdout } = await runCli(["sandbox", "vendors"]);
    expect(stdout).toContain("gitlab\t2026-08-26\ttrue\tagentauth login https://gitlab.com/api/v4/mcp\n");
  });
});

describe("completion of --like", () => {
  const complete = async (...words: string[]) => (await runCli(["complete", "--", ...words])).stdout;

  it("offers the names", async () => {
    expect(await complete("sandbox", "start", "--like", "sl")).toBe("slack\t\nslack-user-token\t\n:4\n");
    expect(await complete("sandbox", "start", "--like=okt")).toContain("okta\t\n");
  });
});
