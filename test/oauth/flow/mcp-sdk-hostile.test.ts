import { describe, expect, onTestFinished } from "vitest";
import type { TestMcp } from "../../helpers/issuer.js";
import type { TestLogin } from "../../helpers/login.js";
import { Peer } from "../../helpers/peer.js";
import { LOGIN_FLOWS } from "../mcp-sdk/login-flows.js";
import { sceneTest as it } from "../support.js";

/** Has an MCP server accept a token and answer each request with another 403. */
function demandScopes({ mcp }: { mcp: TestMcp }, scope: (nth: number) => string): void {
  const challenge = `resource_metadata="${mcp.origin}${mcp.wellKnown}"`;
  mcp.routes["/mcp"] = (request, nth) => {
    if (request.headers.authorization === undefined) return mcp.refusal();
    const field = `Bearer error="insufficient_scope", scope="${scope(nth)}", ${challenge}`;
    return { status: 403, headers: { "www-authenticate": field }, text: "" };
  };
}

/** The scopes of the logins, in order. */
function logins({ login }: { login: TestLogin }): (string | null)[] {
  return login.urls.map(({ searchParams }) => searchParams.get("scope"));
}

describe.each(LOGIN_FLOWS)("%s, with a hostile server", (_name, connect) => {
  it("asks the user to log in at most four times for scopes that change with every answer", async ({ scene }) => {
    demandScopes(scene, (nth) => `scope-${nth}`);
    await expect(connect(scene.mcp.url, scene.agent())).rejects.toThrow();
    expect(logins(scene).length).toBeLessThanOrEqual(4);
  });

  it("logs in at most twice for a scope that the issuer never grants", async ({ scene }) => {
    demandScopes(scene, () => "admin");
    scene.issuer.tokenAnswer = { scope: "none" };
    await expect(connect(scene.mcp.url, scene.agent())).rejects.toThrow();
    expect(logins(scene)).toEqual([null, "none admin"]);
  });

  it("requests no scopes that break the rules of RFC 6749", async ({ scene }) => {
    demandScopes(scene, () => "s ".repeat(10) + Array.from({ length: 300 }, (_, nth) => `s${nth}`).join(" "));
    await expect(connect(scene.mcp.url, scene.agent())).rejects.toThrow();
    expect(logins(scene)).toEqual([null]);
  });

  it("sends no request to an address that only a challenge names", async ({ scene }) => {
    const elsewhere = await new Peer("elsewhere", scene.mcp.requests).start();
    onTestFinished(() => elsewhere.close());
    scene.mcp.challenge = `Bearer resource_metadata="${elsewhere.origin}/x"`;
    await expect(connect(scene.mcp.url, scene.agent())).rejects.toThrow();
    expect(elsewhere.requests).toEqual([]);
    expect(logins(scene)).toEqual([]);
  });
});
