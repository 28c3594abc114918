import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant } from "../../helpers/grant.js";
import { grantFiles } from "../../helpers/grant-files.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { until } from "../../helpers/server.js";
import { folder } from "../../store/stores.js";

const SIGNAL = new AbortController().signal;
const FULL = new AgentAuthError("store_failed", "no room (ENOSPC)", { class: "store" });

/** A store with room for none, or one that counts the rooms that were taken and not given back. */
function watched(store: GrantStore) {
  const taken: (string | undefined)[] = [];
  const heldAtSave: number[] = [];
  let held = 0;
  const counting: GrantStore = {
    ...store,
    save(grant, expected) {
      heldAtSave.push(held);
      return store.save(grant, expected);
    },
    async reserve(key) {
      const room = await store.reserve(key);
      taken.push(key.account);
      let isHeld = true;
      held++;
      return {
        save: (grant, expected) => room.save(grant, expected),
        release: async () => {
          if (isHeld) held--;
          isHeld = false;
          await room.release();
        },
      };
    },
  };
  return { store: counting, taken, heldAtSave, held: () => held };
}

const full = (store: GrantStore): GrantStore => ({
  ...store,
  reserve: async () => {
    throw FULL;
  },
});

async function inTwoSteps({ agent, mcp, login }: Scene, store: GrantStore): Promise<void> {
  const prepared = await agent().beginLogin(mcp.url, login.redirectUri);
  const session = await login.open({ resource: mcp.url, issuer: prepared.issuer.issuer, signal: SIGNAL });
  await agent({ store }).finishLogin(prepared, session);
}

describe("where there is no room for a grant", () => {
  it("no login is required", async () => {
    const { agent, mcp, login, issuer, store } = await startScene();
    await expect(agent({ store: full(store) }).login(mcp.url)).rejects.toBe(FULL);
    expect([login.opened, issuer.to("/pool/register"), issuer.to("/pool/token")]).toEqual([[], [], []]);
  });

  it("no device code is requested", async () => {
    const { agent, mcp, login, issuer, store } = await startScene();
    await expect(agent({ store: full(store), flow: "device" }).login(mcp.url)).rejects.toBe(FULL);
    expect([login.prompts, issuer.to("/pool/device"), issuer.to("/pool/register")]).toEqual([[], [], []]);
  });

  it("a login in two steps does not begin", async () => {
    const { agent, mcp, login, issuer, store } = await startScene();
    await expect(agent({ store: full(store) }).beginLogin(mcp.url, login.redirectUri)).rejects.toBe(FULL);
    expect(issuer.to("/pool/register")).toEqual([]);
  });

  it("a login in two steps fails before the browser opens, and reports that", async () => {
    const scene = await startScene();
    await expect(inTwoSteps(scene, full(scene.store))).rejects.toBe(FULL);
    expect(scene.login.urls).toEqual([]);
    expect(scene.login.outcomes).toEqual([{ ok: false, error: FULL }]);
  });
});

describe("the room that a login takes", () => {
  it.each([
    [
      "in one step",
      (scene: Scene, store: GrantStore) => scene.agent({ store, loginHint: "alice" }).login(scene.mcp.url),
    ],
    [
      "on another device",
      (scene: Scene, store: GrantStore) =>
        scene.agent({ store, loginHint: "alice", flow: "device" }).login(scene.mcp.url),
    ],
  ])("is for its account, and is given back in the end, %s", async (_how, login) => {
    const scene = await startScene();
    const { store, taken, held } = watched(scene.store);
    await login(scene, store);
    expect([taken, held()]).toEqual([["alice"], 0]);
    scene.issuer.routes["/pool/token"] = { status: 400, json: { error: "access_denied" } };
    expect(await pendingError(login(scene, store))).toMatchObject({ code: "access_denied" });
    expect([taken, held()]).toEqual([["alice", "alice"], 0]);
  });

  it("is released by both halves of a login in two steps", async () => {
    const scene = await startScene();
    const { store, taken, held } = watched(scene.store);
    const prepared = await scene
      .agent({ store, loginHint: "alice" })
      .beginLogin(scene.mcp.url, scene.login.redirectUri);
    expect([taken, held()]).toEqual([["alice"], 0]);
    const session = await scene.login.open({ resource: scene.mcp.url, issuer: prepared.issuer.issuer, signal: SIGNAL });
    await scene.agent({ store }).finishLogin(prepared, session);
    expect([taken, held()]).toEqual([["alice", "alice"], 0]);
  });

  it("is reserved while the user logs in, and released when they never finish", async () => {
    const { agent, mcp, login } = await startScene();
    const home = folder();
    const controller = new AbortController();
    login.before = () => new Promise((resolve) => controller.signal.addEventListener("abort", resolve));
    const work = agent({ store: fileStore(home) }).login(mcp.url, { signal: controller.signal });
    await until(() => login.urls.length > 0);
    const files = () => grantFiles(home);
    expect(files()).toEqual([expect.stringMatching(/\.tmp$/)]);
    controller.abort();
    expect(await pendingError(work)).toMatchObject({ code: "aborted" });
    expect(files()).toEqual([]);
  });

  it.each([
    ["memoryStore", () => memoryStore()],
    ["fileStore", () => fileStore(folder())],
  ])("lets a login be saved over what was stored since (%s)", async (_name, open) => {
    const { agent, mcp, login } = await startScene();
    const inner = open();
    const { store, held, heldAtSave } = watched(inner);
    const key = { profile: "default", server: mcp.url };
    login.before = async () => {
      await inner.save(madeGrant({ ...key, generation: 3 }), undefined);
    };
    expect((await agent({ store }).login(mcp.url)).value).toBe("access-as-1");
    expect(await store.read(key)).toMatchObject({ generation: 4 });
    // On a disk that is full the second save has the room of the first.
    expect([heldAtSave, held()]).toEqual([[0], 0]);
  });

  it("lets a login be saved where what was there was removed since", async () => {
    const { agent, mcp, login } = await startScene();
    const store = fileStore(folder());
    const client = agent({ store });
    await client.login(mcp.url);
    login.before = () => store.remove({ profile: "default", server: mcp.url });
    expect((await client.login(mcp.url)).value).toBe("access-as-2");
    expect(await store.list()).toHaveLength(1);
  });
});
