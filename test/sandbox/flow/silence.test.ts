import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startSandbox } from "../../../src/sandbox/index.js";
import { begin, callTool, discover, logIn, post, refresh, register, rpc, TOKEN_EXCHANGE } from "../oauth/support.js";

const METHODS = ["log", "info", "warn", "error", "debug", "trace"] as const;
let printed: unknown[][] = [];
beforeAll(() => {
  printed = [];
  for (const method of METHODS) vi.spyOn(console, method).mockImplementation((...args) => void printed.push(args));
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((chunk) => printed.push([chunk]) > 0);
  }
});
afterAll(() => void vi.restoreAllMocks());

it("prints nothing, and keeps no secret in the request log", async () => {
  const warnings: unknown[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  await using sandbox = await startSandbox({ devices: 5, autoApprove: true, deviceFlow: true, revocation: true });
  const grants = ["authorization_code", "refresh_token", TOKEN_EXCHANGE];
  const session = await logIn(sandbox, { scope: "openid mcp" }, { grant_types: grants });
  const { as, client, tokens } = session;
  await callTool(sandbox.mcpUrl, tokens.access_token, "whoami");
  await rpc(sandbox.mcpUrl, tokens.access_token, "subscriptions/listen");
  await rpc(sandbox.mcpUrl, tokens.access_token, "\u001b[31m");
  await fetch(sandbox.mcpUrl, { headers: { authorization: `Bearer ${tokens.access_token}` } });
  for (const endpoint of [as.token_endpoint, as.introspection_endpoint, as.revocation_endpoint]) {
    await post(session, endpoint, { token: tokens.access_token, grant_type: "nonsense" });
    await fetch(endpoint ?? "", { method: "POST", body: "{" });
  }
  await fetch(`${as.issuer}/authorize?client_id=nobody`);
  await fetch(`${as.issuer}/authorize/nothing`);
  await fetch(`${as.issuer}/end_session?id_token_hint=${tokens.id_token}`);
  await fetch(`${as.registration_endpoint}`, { method: "POST", body: "nonsense" });
  await register(as, { token_endpoint_auth_method: "none" });
  await post(session, as.device_authorization_endpoint, {});
  await fetch((await begin(await discover(sandbox), client, { scope: "openid", nonce: "n" })).url, {
    redirect: "manual",
  });
  await refresh(session);
  await refresh(session);
  await sandbox.close();
  expect(printed).toEqual([]);
  expect(warnings).toEqual([]);
  const log = JSON.stringify(sandbox.requests);
  const secrets = [tokens.access_token, tokens.refresh_token, tokens.id_token, client["client_secret"]];
  for (const secret of secrets) expect(log).not.toContain(secret);
  expect(log).not.toMatch(/"code":"(?!\*)/);
});
