import { describe, expect, it } from "vitest";
import { FETCH_BROWSER } from "../../../flow/support.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { startLike } from "../../../vendors/shape-server.js";

const SMALL = { accounts: 1, domains: 1, pools: 1, devices: 0 };

/** A user at a sandbox of a recorded server. */
async function visit(like: string, secret = "") {
  const sandbox = await startLike(like, SMALL);
  const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_CLIENT_SECRET: secret };
  const run = (...args: string[]) => runCli(args, { env });
  const login = (...flags: string[]) =>
    run("login", sandbox.mcpUrl, "--browser", FETCH_BROWSER, "--client-id", "your-client", ...flags);
  return { sandbox, run, login };
}

describe("--authorize-param", () => {
  it("gets a refresh token at a server like Google's, also as a setting, and is listed", async () => {
    const { sandbox, run, login } = await visit("google-workspace", "your-secret");
    const flags = ["--trust-named-issuer", "--allow-cross-origin-endpoints"];
    const plain = await login(...flags);
    expect(plain).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /; it comes without a refresh token: log in again then, or at once with an --authorize-param/m,
      ),
    });
    // A repeated login needs the consent as well.
    const offline = await login(...flags, "--authorize-param", "access_type=offline");
    expect(offline.stderr).toContain("without a refresh token");
    expect(await run("config", "set", "authorize_params", "prompt=consent")).toMatchObject({ code: 0 });
    const both = await login(...flags);
    expect(both).toMatchObject({ code: 0, stderr: expect.not.stringContaining("without a refresh token") });
    const { stdout } = await run("status", "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject([
      {
        refreshable: true,
        exceptions: [
          "--allow-cross-origin-endpoints",
          "--authorize-param access_type=offline",
          "--authorize-param prompt=consent",
        ],
      },
    ]);
    await sandbox.close();
  });

  it("leaves out the consent that a user may not give, as the login says while it waits", async () => {
    const { sandbox, login } = await visit("entra-admin-consent");
    const flags = ["--allow-missing-pkce-metadata"];
    const hint = /wants an approval that you cannot give, .* --authorize-param prompt=\.$/m;
    expect(await login(...flags, "--login-timeout", "1")).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(hint),
    });
    const begun = await login(...flags, "--no-wait");
    expect(begun).toMatchObject({ code: 0, stderr: expect.stringMatching(hint) });
    expect(await login(...flags, "--authorize-param", "prompt=")).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining("without a refresh token"),
    });
    await sandbox.close();
  });

  it.each(["scope=x", "login_hint=me", "state=x", "prompt", "=x"])("is refused with %s", async (text) => {
    const { code, stderr } = await runCli(["login", "https://mcp.example/mcp", "--authorize-param", text]);
    expect(code).toBe(2);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it.each(["scope=x", "&"])("is refused as the setting %j", async (text) => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const { code, stderr } = await runCli(["config", "set", "authorize_params", text], { env });
    expect(code).toBe(2);
    expect(fixedText(stderr)).toMatchSnapshot();
  });
});

describe("a callback without the announced iss", () => {
  it("is refused with the case, and names the operator", async () => {
    const { sandbox, run } = await visit("twenty");
    const { code, stderr } = await run("login", sandbox.mcpUrl, "--browser", FETCH_BROWSER);
    expect(code).toBe(3);
    expect(stderr).toContain("authorization_response_iss_parameter_supported");
    expect(stderr).toMatch(/^hint: no option accepts that; the operator of /m);
    await sandbox.close();
  });
});
