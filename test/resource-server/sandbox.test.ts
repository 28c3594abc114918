import { describe, expect, it } from "vitest";
import { createResourceServer } from "../../src/resource-server/index.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { rejection } from "../helpers/service.js";
import { logIn, post, register } from "../sandbox/oauth/support.js";

describe.each([false, true])("against the authorization server of the sandbox, opaque: %s", (opaque) => {
  it("takes its tokens, and none that it took back or issued for another server", async () => {
    await using sandbox = await startSandbox({ devices: 5, autoApprove: true, revocation: true, opaque });
    const session = await logIn(sandbox, { resource: sandbox.mcpUrl, scope: "mcp reports:read" });
    const { client_id: clientId, client_secret } = await register(session.as);
    const introspection = { clientId, clientSecret: String(client_secret), cacheTtlSeconds: 0 };
    const authorizationServers = [session.as.issuer];
    const server = createResourceServer({ resource: sandbox.mcpUrl, authorizationServers, introspection });
    const token = session.tokens.access_token;
    const verified = await server.verify(token, { scopes: ["reports:read"] });
    expect(verified).toMatchObject({
      subject: "alice",
      clientId: session.client.client_id,
      issuer: session.as.issuer,
      audience: [sandbox.mcpUrl],
    });
    expect(sandbox.requests.map(({ path }) => path)).toContain(
      `/${sandbox.ids.pool}/${opaque ? "introspect" : "jwks"}`,
    );
    const other = createResourceServer({ resource: `${sandbox.mcpUrl}/x`, authorizationServers, introspection });
    expect(await rejection(other.verify(token))).toMatchObject({ code: "invalid_token" });
    const asking = createResourceServer({
      resource: sandbox.mcpUrl,
      authorizationServers,
      introspection,
      tokens: "introspection",
    });
    expect((await asking.verify(token)).subject).toBe("alice");
    await post(session, session.as.revocation_endpoint, { token: session.tokens.refresh_token ?? "" });
    expect(await rejection(asking.verify(token))).toMatchObject({ code: "invalid_token" });
  });

  it("waits where the issuer is down", async () => {
    await using sandbox = await startSandbox({ devices: 5, autoApprove: true, opaque });
    const session = await logIn(sandbox, { resource: sandbox.mcpUrl });
    const introspection = { clientId: session.client.client_id, clientSecret: String(session.client["client_secret"]) };
    const server = createResourceServer({
      resource: sandbox.mcpUrl,
      authorizationServers: [session.as.issuer],
      introspection,
    });
    sandbox.faults.add({ kind: "status", status: 503, path: opaque ? "introspect" : "jwks", times: 0 });
    expect(await rejection(server.verify(session.tokens.access_token))).toMatchObject({
      class: "unavailable",
      status: 503,
    });
  });
});
