import { describe, expect, it } from "vitest";
import { fileStore } from "../../../src/store/file/file.js";
import { compile, startChild } from "../../helpers/child.js";
import { until } from "../../helpers/server.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../../store/stores.js";
import type { AgentJob } from "../agent-driver.js";
import { SIGNAL, startSharedScene } from "./support.js";

describe("two processes", () => {
  it("open one browser, and the one that waits gets the login", async () => {
    const home = folder();
    const { seat, mcp, issuer } = await startSharedScene(() => fileStore(home));
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const authorize = issuer.routes["/pool/authorize"];
    issuer.routes["/pool/authorize"] = async (request, nth) => {
      await held;
      return typeof authorize === "function" ? authorize(request, nth) : {};
    };
    const job: AgentJob = { folder: home, mcpUrl: mcp.url, work: "login" };
    const child = startChild(await compile(new URL("../agent-driver.ts", import.meta.url)), job);
    await until(() => issuer.to("/pool/authorize").length > 0);
    const said: string[] = [];
    const here = seat({ onProgress: ({ text }) => said.push(text) });
    const following = here.agent.token(mcp.url);
    await until(() => said.length > 0);
    expect(said[0]).toContain(`process ${child.pid}`);
    release();
    expect(await child.hears("ended")).toMatchObject({ opened: 1, value: "access-as-1" });
    expect((await following).value).toBe("access-as-1");
    expect(here.login.opened).toEqual([]);
  });

  it("do not wait for a login that another process waits for, once there is a login from elsewhere", async () => {
    const home = folder();
    const { seat, mcp, issuer, store } = await startSharedScene(() => fileStore(home));
    const authorize = issuer.routes["/pool/authorize"];
    issuer.routes["/pool/authorize"] = { raw: () => undefined };
    const job: AgentJob = { folder: home, mcpUrl: mcp.url, work: "login" };
    startChild(await compile(new URL("../agent-driver.ts", import.meta.url)), job);
    await until(() => issuer.to("/pool/authorize").length > 0);
    if (authorize) issuer.routes["/pool/authorize"] = authorize;
    const said: string[] = [];
    const here = seat({ onProgress: ({ text }) => said.push(text) });
    const following = here.agent.token(mcp.url);
    await until(() => said.length > 0);
    const elsewhere = seat();
    const login = await elsewhere.agent.beginLogin(mcp.url, elsewhere.login.redirectUri);
    const request = { resource: mcp.url, issuer: login.issuer.issuer, preferredRedirectUri: undefined, signal: SIGNAL };
    const { value } = await elsewhere.agent.finishLogin(login, await elsewhere.login.open(request));
    expect((await following).value).toBe(value);
    expect(here.login.opened).toEqual([]);
    expect(await store.list()).toHaveLength(1);
  });

  it.skipIf(ON_WINDOWS)("do not wait for one that was killed in the middle of it", async () => {
    const home = folder();
    const { seat, mcp, issuer } = await startSharedScene(() => fileStore(home));
    const authorize = issuer.routes["/pool/authorize"];
    issuer.routes["/pool/authorize"] = { raw: () => undefined };
    const job: AgentJob = { folder: home, mcpUrl: mcp.url, work: "login" };
    const child = startChild(await compile(new URL("../agent-driver.ts", import.meta.url)), job);
    await until(() => issuer.to("/pool/authorize").length > 0);
    const here = seat();
    const following = here.agent.token(mcp.url);
    if (authorize) issuer.routes["/pool/authorize"] = authorize;
    await child.kill("SIGKILL");
    expect((await following).value).toBe("access-as-1");
    expect(here.login.opened).toHaveLength(1);
  });
});
