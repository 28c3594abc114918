import { expect, it } from "vitest";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/index.js";
import { startScene } from "../helpers/issuer.js";
import { TestLogin } from "../helpers/login.js";
import { sandboxTest } from "../sandbox/sandbox-test.js";

const withSandbox = sandboxTest({ autoApprove: true, revocation: true });

withSandbox("makes a login beside the stored one, and each is refreshed without the other", async ({ sandbox }) => {
  const agent = new AgentClient({ store: memoryStore(), login: new TestLogin() });
  const stored = await agent.token(sandbox.mcpUrl);
  const [before] = await agent.status();
  const made = await agent.handOver(sandbox.mcpUrl);
  expect(await agent.status()).toEqual([before]);
  const { refresh, ...rest } = made.reveal();
  if (refresh === undefined) throw new Error("no refresh token");
  expect(rest).toMatchObject({ type: "mcp_oauth", mcp_server_url: sandbox.mcpUrl });
  expect([refresh.client_id, made.refreshable]).toEqual([made.clientId, true]);
  expect(made.clientId).not.toBe(before?.client_id);
  // As a vault does it.
  const auth = refresh.token_endpoint_auth;
  if (auth.type !== "client_secret_basic") throw new Error(auth.type);
  const { refresh_token, scope = "", resource = "" } = refresh;
  const response = await fetch(refresh.token_endpoint, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${refresh.client_id}:${auth.client_secret}`)}` },
    body: new URLSearchParams({ grant_type: "refresh_token", refresh_token, scope, resource }),
  });
  expect(await response.json()).toMatchObject({ token_type: "Bearer", scope });
  expect((await agent.token(sandbox.mcpUrl, { forceRefresh: true })).value).not.toBe(stored.value);
});

it("has the forms of the vaults, without what the issuer did not say", async () => {
  const { agent, issuer, mcp } = await startScene();
  issuer.tokenAnswer = { refresh_token: undefined, expires_in: undefined, scope: undefined };
  const made = await agent().handOver(mcp.url);
  const auth = { type: "mcp_oauth", mcp_server_url: mcp.url, access_token: "access-as-1" };
  expect(made.reveal()).toEqual(auth);
  expect(made.reveal("anthropic")).toEqual({ display_name: mcp.url, auth });
  expect(made.reveal("openai")).toEqual({ name: mcp.url, auth });
  expect([made.refreshable, made.expiresAt]).toEqual([false, undefined]);
});

it("uses the client that the options name as it is, and changes nothing that is stored of it", async () => {
  const { agent, issuer, mcp, store } = await startScene();
  const client = { clientId: "mine", clientSecret: "its-secret", authMethod: "client_secret_post" } as const;
  const made = await agent({ client }).handOver(mcp.url);
  expect(made.reveal().refresh).toMatchObject({
    client_id: "mine",
    token_endpoint_auth: { type: "client_secret_post", client_secret: "its-secret" },
  });
  expect(issuer.to("/pool/register")).toEqual([]);
  expect([await store.list(), await store.listBindings()]).toEqual([[], []]);
  const bound = {
    profile: "default",
    clientId: "mine",
    issuer: "https://other.example",
    boundBy: "use",
    boundAt: 1,
  } as const;
  await store.saveBinding(bound, undefined);
  await expect(agent({ client }).handOver(mcp.url)).rejects.toMatchObject({ code: "issuer_changed" });
  expect(await store.listBindings()).toEqual([bound]);
});

it("registers a client where the issuer also takes the metadata document, which other logins have", async () => {
  const { agent, issuer, mcp } = await startScene();
  const clientMetadataUrl = "https://app.example/client.json";
  issuer.metadata["client_id_metadata_document_supported"] = true;
  const own = agent({ clientMetadataUrl });
  expect([(await own.login(mcp.url)).value, (await own.handOver(mcp.url)).clientId]).toEqual([
    "access-as-1",
    "client-as-1",
  ]);
  delete issuer.metadata["registration_endpoint"];
  expect((await agent({ clientMetadataUrl }).handOver(mcp.url)).clientId).toBe(clientMetadataUrl);
});

it("revokes what a vault did not take, and no other login at the server", async () => {
  const { agent, issuer, mcp, store } = await startScene();
  await agent({ loginHint: "ann" }).login(mcp.url);
  const made = await agent().handOver(mcp.url);
  expect([await made.revoke(), await made.revoke()]).toMatchObject([{ revoked: true }, { revoked: null }]);
  const tokens = issuer.to("/pool/revoke").map(({ body }) => new URLSearchParams(body).get("token"));
  expect(tokens).toEqual(["refresh-as-2", "access-as-2"]);
  expect(await store.list()).toMatchObject([{ account: "ann" }]);
});

const KEPT: readonly (readonly [string, Partial<AgentClientOptions>])[] = [
  ["a private key", { client: { clientId: "c", privateKey: {} as never } }],
  ["a client certificate", { mutualTls: true }],
  ['dpop "required"', { dpop: "required" }],
];

it.each(KEPT)("refuses %s before any request", async (_what, options) => {
  const { agent, mcp, log } = await startScene();
  await expect(agent(options).handOver(mcp.url)).rejects.toMatchObject({ code: "usage" });
  expect(log).toEqual([]);
});
