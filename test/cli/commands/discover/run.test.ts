import { expect } from "vitest";
import { runDiscover } from "../../../../src/cli/commands/discover/run.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { startScene } from "../../../helpers/issuer.js";
import { sendJson, startServer } from "../../../helpers/server.js";
import { startRun } from "../../run-support.js";
import { harnessTest, startHarness } from "../harness.js";

const METADATA = "/.well-known/oauth-authorization-server";

const it = harnessTest({ scopesSupported: ["mcp", "reports:read"] });

it("prints every step, and what it found", async ({ harness, user }) => {
  const { code, stdout } = await user.run(["discover", harness.url]);
  const issuer = harness.sandbox.authUrl(harness.sandbox.ids.pool);
  expect(code).toBe(0);
  const { pool } = harness.sandbox.ids;
  expect(fixedText(stdout).replaceAll(pool, "<pool_id>")).toMatchSnapshot();
  expect(stdout).toMatch(/^[+-] challenge: (?:GET|POST) http/);
  expect(stdout).toContain(`\nissuer         ${issuer}\n`);
  expect(stdout).toContain("\nscopes         mcp reports:read\n");
});

it.each([
  ["appended", "404: no document here", true],
  ["rfc8414", "404: no document here", false],
  ["both", "200: another document takes precedence", true],
] as const)("finds metadata that is published at: %s, the appended form first", async (metadata, unused, appended) => {
  const other = await startHarness({ metadata });
  try {
    const { code, stdout } = await other.user().run(["discover", other.url]);
    const { pool } = other.sandbox.ids;
    const addresses = [`/${pool}${METADATA}`, `${METADATA}/${pool}`].map((path) => other.sandbox.origin + path);
    const [used, spare] = appended ? addresses : addresses.toReversed();
    expect(code).toBe(0);
    expect(stdout).toContain(`+ server metadata: GET ${used} 200: it names the issuer\n`);
    expect(stdout).toContain(`- server metadata: GET ${spare} ${unused}\n`);
  } finally {
    await other.close();
  }
});

it("prints the same as JSON", async ({ harness, user }) => {
  const { code, stdout } = await user.run(["discover", harness.url, "--json"]);
  const issuer = expect.objectContaining({ issuer: harness.sandbox.authUrl(harness.sandbox.ids.pool) });
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ server: harness.url, issuer })]);
});

it("exits with 3 where no issuer is found, and prints the steps until then", async ({ harness, faults }) => {
  faults.add({ kind: "status", status: 404, path: "metadata", times: 0 });
  const text = await harness.user().run(["discover", harness.url]);
  const json = await harness.user().run(["discover", harness.url, "--json"]);
  expect([text.code, text.stdout]).toEqual([3, expect.stringContaining("+ resource metadata: ")]);
  expect(text.stderr).toContain("publishes no metadata (RFC 8414)");
  expect([fixedText(text.stdout), JSON.parse(fixedText(json.stdout)).error]).toMatchSnapshot();
  const { error, issuer } = JSON.parse(json.stdout) as { error: { message: string }; issuer?: unknown };
  expect([json.code, issuer, error.message]).toEqual([3, undefined, expect.stringContaining("RFC 8414")]);
});

it("exits with 5 where the server cannot be reached", async ({ user }) => {
  const { code, stderr } = await user.run(["discover", "http://127.0.0.1:9/mcp", "--retries", "0"]);
  expect([code, stderr]).toEqual([5, expect.stringContaining("127.0.0.1:9")]);
});

it("refuses an address that is none", async ({ user }) => {
  expect(await user.run(["discover", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
});

it("names what was found of an issuer with less, and of a server that requires no login", async ({ user }) => {
  const { mcp, issuer } = await startScene();
  delete issuer.metadata["registration_endpoint"];
  mcp.metadata = { ...mcp.metadata, scopes_supported: undefined };
  const text = await user.run(["discover", mcp.url]);
  expect(text.stdout).toContain("\nregistration   (no dynamic registration)\nscopes         (not announced)\n");
  expect(text.stdout).toMatch(new RegExp(`\nlog in with: agentauth login ${mcp.url} --client-id \\S+`));
  const open = await startServer((response, request) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "x", version: "1" } };
    sendJson(response, { jsonrpc: "2.0", id: JSON.parse(request.body).id, result });
  });
  const url = `${open.origin}/mcp`;
  const free = await user.run(["discover", url]);
  expect([free.code, free.stdout.split("\n").slice(-5)]).toEqual([
    0,
    ["", `${url} requires no login`, "", `list its tools with: agentauth mcp tools ${url}`, ""],
  ]);
  expect(JSON.parse((await user.run(["discover", url, "--json"])).stdout)).toMatchObject({
    ...{ server: url, login_required: false, command: `agentauth mcp tools ${url}` },
  });
});

it("names a resource that is a parent of the server", async () => {
  const { mcp } = await startScene();
  const facts = async () => {
    const { context, io } = startRun();
    await runDiscover({ url: mcp.url } as Parameters<typeof runDiscover>[0], context);
    return io.out().split("\n\n")[1];
  };
  expect(await facts()).toContain(`\nresource       ${mcp.url}\nissuer `);
  mcp.metadata = { ...mcp.metadata, resource: mcp.origin };
  const note = "a parent of the server URL: every server below it may accept the token";
  expect(await facts()).toContain(`\nresource       ${mcp.origin}\n               ${note}\nissuer `);
});

it("ends with the command that logs in, with the flags that were given", async ({ harness }) => {
  const plain = await harness.user().run(["discover", harness.url]);
  expect(plain.stdout).toMatch(new RegExp(`\nlog in with: agentauth login ${harness.url}\n$`));
  const flags = ["--legacy-discovery", "--accept-token-type", "user", "--resource", "none"];
  const given = await harness.user().run(["discover", harness.url, ...flags]);
  expect([given.code, given.stdout]).toEqual([0, expect.stringContaining("log in with: agentauth login ")]);
  for (const flag of ["--legacy-discovery", "--accept-token-type user", "--resource none"])
    expect(given.stdout).toContain(` ${flag}`);
});

it("leaves it to the user to let the code be sent to another origin", async ({ user }) => {
  const scene = await startScene();
  const { issuer, mcp } = scene;
  const other = await scene.another("other");
  issuer.metadata["token_endpoint"] = `${other.issuer}/token`;
  const flag = "--allow-cross-origin-endpoints";
  const run = (...flags: string[]) => user.run(["discover", mcp.url, ...flags]);
  const command = `agentauth login ${mcp.url}`;
  const warning = `the code from ${issuer.origin} would be sent to ${other.origin}: only if you trust both, add ${flag}`;
  expect((await run()).stdout.endsWith(`\nlog in with: ${command}\nwarning: ${warning}\n`)).toBe(true);
  expect(JSON.parse((await run("--json")).stdout)).toMatchObject({ command, warning });
  const given = (await run(flag)).stdout;
  expect(given.endsWith(`\nlog in with: ${command} ${flag}\n`)).toBe(true);
  issuer.metadata["authorization_response_iss_parameter_supported"] = true;
  expect(JSON.parse((await run("--json")).stdout)).not.toHaveProperty("warning");
});

it("ends with the login that accepts a resource, if only a challenge names its metadata", async ({ harness }) => {
  const { mcp } = await startScene({ mcpPath: "/api/mcp" });
  mcp.challenge = `Bearer resource_metadata="${mcp.origin}/api/prm"`;
  mcp.routes["/api/prm"] = () => ({ json: { ...mcp.metadata, resource: mcp.origin } });
  delete mcp.routes[mcp.wellKnown];
  const { code, stderr } = await harness.user().run(["discover", mcp.url]);
  expect([code, stderr]).toEqual([
    3,
    expect.stringContaining(`: agentauth login ${mcp.url} --resource ${mcp.origin}\n`),
  ]);
  const flagged = await harness.user().run(["discover", mcp.url, "--resource", mcp.origin]);
  expect(flagged).toMatchObject({ code: 0, stdout: expect.stringContaining(`\nresource       ${mcp.origin}\n`) });
});

it("ends with the login of a server without metadata", async ({ user }) => {
  const { mcp } = await startScene();
  mcp.challenge = undefined;
  delete mcp.routes[mcp.wellKnown];
  const { code, stderr } = await user.run(["discover", mcp.url]);
  expect([code, stderr]).toEqual([3, expect.stringContaining(`: agentauth login ${mcp.url} --legacy-discovery\n`)]);
});
