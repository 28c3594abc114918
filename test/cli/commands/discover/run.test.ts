import { afterAll, beforeAll, expect, it } from "vitest";
import { runDiscover } from "../../../../src/cli/commands/discover/run.js";
import { startScene } from "../../../helpers/issuer.js";
import { startRun } from "../../run-support.js";
import { type Desk, startDesk } from "../desk.js";

let desk: Desk;
beforeAll(async () => {
  desk = await startDesk({ scopesSupported: ["mcp", "reports:read"] });
});
afterAll(() => desk.close());

it("prints every step, and what it found", async () => {
  const { code, stdout } = await desk.user().run(["discover", desk.url]);
  const issuer = desk.sandbox.authUrl(desk.sandbox.ids.pool);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^[+-] challenge: (?:GET|POST) http/);
  expect(stdout).toContain(`\nissuer         ${issuer}\n`);
  expect(stdout).toContain("\nscopes         mcp reports:read\n");
});

it("prints the same as JSON", async () => {
  const { code, stdout } = await desk.user().run(["discover", desk.url, "--json"]);
  const issuer = expect.objectContaining({ issuer: desk.sandbox.authUrl(desk.sandbox.ids.pool) });
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ server: desk.url, issuer })]);
});

it("exits with 3 where no issuer is found, and prints the steps until then", async () => {
  desk.sandbox.faults.add({ kind: "status", status: 404, path: "metadata", times: 0 });
  const text = await desk.user().run(["discover", desk.url]);
  const json = await desk.user().run(["discover", desk.url, "--json"]);
  desk.sandbox.faults.clear();
  expect([text.code, text.stdout]).toEqual([3, expect.stringContaining("+ resource metadata: ")]);
  expect(text.stderr).toContain("publishes no metadata (RFC 8414)");
  const { error, issuer } = JSON.parse(json.stdout) as { error: { message: string }; issuer?: unknown };
  expect([json.code, issuer, error.message]).toEqual([3, undefined, expect.stringContaining("RFC 8414")]);
});

it("exits with 5 where the server cannot be reached", async () => {
  const { code, stderr } = await desk.user().run(["discover", "http://127.0.0.1:9/mcp", "--retries", "0"]);
  expect([code, stderr]).toEqual([5, expect.stringContaining("127.0.0.1:9")]);
});

it("refuses an address that is none", async () => {
  expect(await desk.user().run(["discover", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
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
