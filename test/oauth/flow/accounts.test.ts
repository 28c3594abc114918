import { chmodSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fileStore } from "../../../src/store/file/file.js";
import { pendingError } from "../../helpers/captured.js";
import { grantFiles } from "../../helpers/grant-files.js";
import { startScene } from "../../helpers/issuer.js";
import { remedy } from "../../helpers/remedy.js";
import { folder } from "../../store/stores.js";

/** Logins of some accounts at one server, of which the first one's file is readable by others. */
async function withLoose(accounts: readonly string[]) {
  const home = folder();
  const scene = await startScene();
  const store = fileStore(home);
  const agent = (loginHint?: string) => scene.agent({ store, loginHint, login: undefined });
  for (const [nth, loginHint] of accounts.entries()) {
    await scene.agent({ store, loginHint }).login(scene.mcp.url);
    if (nth === 0) for (const path of grantFiles(home)) chmodSync(path, 0o644);
  }
  return { ...scene, store, agent };
}

describe("a login whose file cannot be used", () => {
  it("keeps the other account from being taken for the one that is meant", async () => {
    const { agent, mcp } = await withLoose(["bob", "alice"]);
    const details = { action: "configure", option: "account" } as const;
    const ambiguous = { code: "account_ambiguous", class: "store", remedy: remedy(details) };
    expect(await pendingError(agent().token(mcp.url))).toMatchObject({
      ...ambiguous,
      message: expect.stringContaining('"alice" is logged in'),
    });
    expect(await pendingError(agent().disconnect(mcp.url))).toMatchObject(ambiguous);
    expect((await agent("alice").token(mcp.url)).value).toBe("access-as-2");
    expect(await pendingError(agent("bob").token(mcp.url))).toMatchObject({ class: "store" });
  });

  it("refuses no login at a server without an account", async () => {
    const { agent, mcp, store } = await withLoose(["bob"]);
    expect(await pendingError(agent().token("https://elsewhere.example/mcp"))).toMatchObject({
      code: "login_required",
    });
    const unusable: string[] = [];
    expect(await agent().status(undefined, { onUnusable: ({ message }) => unusable.push(message) })).toEqual([]);
    expect(unusable).toEqual([expect.stringContaining(store.location)]);
    expect(mcp.tokens()).toEqual([]);
  });
});

describe("a call that can never be right", () => {
  it.each(['a"b', "a\nb", Array.from({ length: 257 }, (_, nth) => `s${nth}`).join(" ")])(
    "is refused with the scopes %j before any request",
    async (scope) => {
      const { agent, mcp, login, log } = await startScene();
      const works = [
        agent().token(mcp.url, { scope }),
        agent().login(mcp.url, { scope }),
        agent().beginLogin(mcp.url, login.redirectUri, { scope }),
      ];
      for (const work of works) expect(await pendingError(work)).toMatchObject({ code: "usage", class: "usage" });
      expect(log).toEqual([]);
    },
  );
});
