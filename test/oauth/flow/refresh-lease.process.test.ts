import { describe, expect, it } from "vitest";
import { fileStore } from "../../../src/store/file/file.js";
import { compile, startChild } from "../../helpers/child.js";
import { silence } from "../../helpers/issuer.js";
import { until } from "../../helpers/server.js";
import { folder } from "../../store/stores.js";
import type { AgentJob } from "../agent-driver.js";
import { loggedIn, refusal, TOKEN } from "../grant/support.js";

describe("a process that is killed while it refreshes", () => {
  it("is named as the reason where its refresh token turns out to be used up", async () => {
    const home = folder();
    const scene = await loggedIn(fileStore(home));
    scene.issuer.routes[TOKEN] = silence;
    const job: AgentJob = { folder: home, mcpUrl: scene.mcp.url, work: "refresh" };
    const child = startChild(await compile(new URL("../agent-driver.ts", import.meta.url)), job);
    await until(() => scene.refreshes() === 1);
    const agent = scene.agent({ login: undefined });
    const reported = expect(agent.token(scene.mcp.url)).rejects.toMatchObject({
      code: "login_required",
      message: expect.stringMatching(/the refresh that began at \S+Z was interrupted when its process ended/),
    });
    scene.issuer.routes[TOKEN] = refusal;
    await child.kill("SIGKILL");
    await reported;
    expect(scene.refreshes()).toBe(2);
    expect(scene.issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-1");
  });

  it("costs nothing with an issuer that answers the same refresh token again", async () => {
    const home = folder();
    const scene = await loggedIn(fileStore(home));
    const answer = scene.issuer.routes[TOKEN];
    scene.issuer.routes[TOKEN] = silence;
    const job: AgentJob = { folder: home, mcpUrl: scene.mcp.url, work: "refresh" };
    const child = startChild(await compile(new URL("../agent-driver.ts", import.meta.url)), job);
    await until(() => scene.refreshes() === 1);
    if (answer) scene.issuer.routes[TOKEN] = answer;
    await child.kill("SIGKILL");
    expect((await scene.agent({ login: undefined }).token(scene.mcp.url)).value).toBe("access-as-3");
  });
});

describe("processes that all find the token ended", () => {
  it("ask the issuer once, and all have the new one", { timeout: 60_000 }, async () => {
    const home = folder();
    const scene = await loggedIn(fileStore(home));
    const path = await compile(new URL("../agent-driver.ts", import.meta.url));
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    scene.issuer.routes[TOKEN] = async (_request, nth) => {
      await held;
      return { json: scene.issuer.tokens(nth) };
    };
    const job: AgentJob = { folder: home, mcpUrl: scene.mcp.url, work: "refresh" };
    const children = Array.from({ length: 8 }, () => startChild(path, job));
    await Promise.all(children.map((child) => child.hears("started")));
    await until(() => scene.refreshes() === 1);
    release();
    const ends = await Promise.all(children.map((child) => child.hears("ended")));
    expect(ends.map(({ error }) => error)).toEqual(Array(8).fill(undefined));
    // Those that began after the end of the first refresh forced one themselves.
    const refreshTokens = scene.issuer.to(TOKEN).map((_, nth) => scene.issuer.form(TOKEN, nth).get("refresh_token"));
    expect(new Set(refreshTokens).size).toBe(refreshTokens.length);
  });
});
