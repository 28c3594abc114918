import { describe, expect, it } from "vitest";
import { startScene } from "../../helpers/issuer.js";

/** A server with a login without an account, and one with. */
async function twoLogins() {
  const scene = await startScene();
  await scene.agent().login(scene.mcp.url);
  await scene.agent({ loginHint: "alice" }).login(scene.mcp.url);
  const left = async () => (await scene.store.list()).map(({ account }) => account);
  return { ...scene, left };
}

describe("signing out of one of two logins at a server", () => {
  it.each([undefined, "alice"])(
    "removes the one without an account where that is meant, as a client of %s",
    async (loginHint) => {
      const { agent, mcp, left } = await twoLogins();
      const client = agent({ loginHint });
      expect(await client.disconnect(mcp.url, { account: null })).toMatchObject({ removed: true });
      expect(await left()).toEqual(["alice"]);
      expect(await client.disconnect(mcp.url, { account: null })).toMatchObject({ removed: false, revoked: null });
      expect(await left()).toEqual(["alice"]);
    },
  );

  it("removes the one of the account that is named, and no other in its place", async () => {
    const { agent, mcp, left } = await twoLogins();
    expect(await agent().disconnect(mcp.url, { account: "alice" })).toMatchObject({ removed: true });
    expect(await agent().disconnect(mcp.url, { account: "alice" })).toMatchObject({ removed: false });
    expect(await left()).toEqual([undefined]);
  });

  it("removes that of the client's own account where none is named", async () => {
    const { agent, mcp, left } = await twoLogins();
    expect(await agent({ loginHint: "alice" }).disconnect(mcp.url)).toMatchObject({ removed: true });
    expect(await left()).toEqual([undefined]);
  });

  it("removes each that status lists, one by one", async () => {
    const { agent, mcp, left } = await twoLogins();
    const client = agent({ loginHint: "alice" });
    for (const { account } of await client.status()) {
      expect(await client.disconnect(mcp.url, { account })).toMatchObject({ removed: true });
    }
    expect(await left()).toEqual([]);
  });
});
