import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/http/deadline.js";
import { createResourceServer } from "../../src/resource-server/index.js";
import { fileStore } from "../../src/store/file/file.js";
import { LOGIN_FLAGS, startHarness } from "../flow/support.js";
import { cleanEnv, runProcess, temporaryFolder, until } from "../helpers/cli.js";
import { OFFICIAL_HOSTS, type OfficialHost } from "./official-hosts.js";
import { RESOURCE, startOfficialServer } from "./official-server.js";

const MEGABYTE = 1024 * 1024;

/** A login of a user at the sandbox, and a reference server that accepts only the sandbox's tokens. */
async function startScene() {
  const harness = await startHarness({ autoApprove: "bob" });
  const { sandbox } = harness;
  const revoked = new Set<string>();
  const server = await startOfficialServer((url) => {
    const guard = createResourceServer({
      resource: url,
      audience: sandbox.mcpUrl,
      authorizationServers: [sandbox.authUrl(sandbox.ids.pool)],
      clockSkewSeconds: 0,
      clock: { ...systemClock, epoch: () => sandbox.clock.now() },
    }).middleware();
    return (request, response, next) => {
      // The tokens are JWTs, which the guard verifies locally: it does not see that a login is revoked.
      request.rawHeaders = request.rawHeaders.map((value) => (revoked.has(value) ? "Bearer revoked" : value));
      return guard(request, response, next);
    };
  });
  const home = temporaryFolder();
  const env = cleanEnv({ AGENTAUTH_HOME: home });
  const login = async () => {
    const args = ["login", server.url, "--resource", sandbox.mcpUrl, ...LOGIN_FLAGS.slice(1)];
    const { code, stderr } = await runProcess(args, { env });
    if (code !== 0) throw new Error(stderr);
  };
  const devices = () => {
    const { data, ids } = sandbox;
    return Array.from({ length: data.deviceCount(ids.pool) }, (_, at) => data.device(ids.pool, at)?.id ?? "");
  };
  const before = new Set(devices());
  await login();
  return {
    sandbox,
    server,
    env,
    login,
    /** Ends the login at the issuer, and its token at the server. */
    async revoke(): Promise<void> {
      for (const { tokens } of await fileStore(home).list()) revoked.add(`Bearer ${tokens.accessToken.reveal()}`);
      for (const id of devices()) {
        if (!before.has(id)) sandbox.data.updateDevice(sandbox.ids.pool, id, { status: "revoked" });
      }
    },
    async close(): Promise<void> {
      await server.stop();
      await harness.close();
    },
  };
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text ?? "";

describe.each(OFFICIAL_HOSTS)("mcp proxy, driven by the stdio transport of %s", (_name, start) => {
  let scene: Awaited<ReturnType<typeof startScene>>;
  let host: OfficialHost;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(async () => {
    await host?.client.close();
    await scene.close();
  });
  const call = (name: string, args: Record<string, unknown> = {}, options: object = {}) =>
    host.call({ name, arguments: args }, options);
  const notified = (method: string) => until(() => host.notified.splice(0).includes(method));

  it("1 connects, 2 to 6 lists and calls tools, lists and reads resources, and lists templates", async () => {
    host = await start(scene.server.url, scene.env);
    expect(host.client.getServerVersion()).toEqual({ name: "official", version: "1" });
    expect((await host.client.listTools()).tools).toHaveLength(8);
    expect(textOf(await call("echo", { text: "hello" }))).toBe("hello");
    expect((await host.client.listResources()).resources).toEqual([{ uri: RESOURCE, name: "note" }]);
    const { contents } = await host.client.readResource({ uri: RESOURCE });
    expect(contents).toEqual([{ uri: RESOURCE, text: "a note" }]);
    expect((await host.client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
  });

  it("7 subscribes to a resource and receives an update", async () => {
    await host.client.subscribeResource({ uri: RESOURCE });
    expect([...scene.server.state.subscribed]).toEqual([RESOURCE]);
    await scene.server.server().sendResourceUpdated({ uri: RESOURCE });
    await notified("notifications/resources/updated");
  });

  it("8 lists prompts and gets one, and 9 completes an argument", async () => {
    expect((await host.client.listPrompts()).prompts).toEqual([{ name: "greet" }]);
    const { messages } = await host.client.getPrompt({ name: "greet", arguments: { who: "bob" } });
    expect(messages[0]?.content).toEqual({ type: "text", text: "greet bob" });
    const { completion } = await host.client.complete({
      ref: { type: "ref/prompt", name: "greet" },
      argument: { name: "who", value: "bo" },
    });
    expect(completion.values).toEqual(["bo!"]);
  });

  it("10 to 12 answers sampling, elicitation and roots", async () => {
    expect(textOf(await call("sample"))).toContain("sampled");
    expect(textOf(await call("elicit"))).toBe('{"name":"bob"}');
    expect(textOf(await call("roots"))).toContain("file:///work");
  });

  it("13 sets the log level and receives a log message", async () => {
    await host.client.setLoggingLevel("error");
    await call("log");
    await notified("notifications/message");
  });

  it("14 receives progress, in order", async () => {
    const seen: number[] = [];
    const counted = call("count", {}, { onprogress: ({ progress }: { progress: number }) => void seen.push(progress) });
    // The client of 1.x drops progress that it reads together with the result.
    await until(() => seen.length === 3);
    scene.server.release();
    expect([textOf(await counted), ...seen]).toEqual(["counted", 1, 2, 3]);
  });

  it("15 cancels a call", async () => {
    const stop = new AbortController();
    const { state } = scene.server;
    const held = call("hold", {}, { signal: stop.signal });
    await until(() => state.held.length === 1);
    stop.abort();
    await expect(held).rejects.toThrow();
    await until(() => state.cancelled.length === 1);
    scene.server.release();
  });

  it("16 pings, 17 and 18 sends and receives 1 MB, and 19 makes 20 calls at once", async () => {
    expect(await host.client.ping()).toEqual({});
    const text = "ä".repeat(MEGABYTE / 2);
    expect(textOf(await call("echo", { text })) === text).toBe(true);
    expect(textOf(await call("big", { size: MEGABYTE }))).toHaveLength(MEGABYTE);
    const texts = Array.from({ length: 20 }, (_, at) => `call ${at}`);
    expect((await Promise.all(texts.map((text) => call("echo", { text })))).map(textOf)).toEqual(texts);
  });

  it("20 resumes a stream that is cut in the middle of an answer", async () => {
    const { state, breakOff, release } = scene.server;
    const held = call("hold");
    await until(() => state.held.length === 1);
    breakOff();
    release();
    expect(textOf(await held)).toBe("released");
  });

  it("21 refreshes a token that expires within the session", async () => {
    const before = (await fileStore(scene.env["AGENTAUTH_HOME"] ?? "").list())[0]?.tokens.accessToken.reveal();
    scene.sandbox.clock.advance(24 * 3_600_000);
    expect(textOf(await call("echo", { text: "later" }))).toBe("later");
    const after = (await fileStore(scene.env["AGENTAUTH_HOME"] ?? "").list())[0]?.tokens.accessToken.reveal();
    expect([after === before, scene.server.state.initialized]).toEqual([false, 1]);
  });

  it("22 reports a login that is revoked, and uses the one that another process makes", async () => {
    await scene.revoke();
    await expect(call("echo", { text: "x" })).rejects.toThrow(`run: agentauth login ${scene.server.url}`);
    await scene.login();
    expect(textOf(await call("echo", { text: "again" }))).toBe("again");
    expect(scene.server.state.initialized).toBe(1);
  });

  it("23 uses a server that was restarted, and says 404 to the session", async () => {
    const { state } = scene.server;
    const held = call("hold");
    held.catch(() => {});
    await until(() => state.held.length === 1);
    const { calls } = state;
    await scene.server.restart("404", { resumable: false });
    const [text] = await Promise.all([
      call("echo", { text: "back" }).then(textOf),
      expect(held).rejects.toThrow(/closed before the response arrived|may have been processed/),
    ]);
    expect([text, state.calls - calls, state.initialized]).toEqual(["back", 1, 2]);
    expect([...state.subscribed]).toEqual([RESOURCE]);
  });

  it("24 uses a server that was restarted, and says 400 to the session", async () => {
    await scene.server.restart("400", { resumable: false });
    expect((await host.client.listTools()).tools).toHaveLength(8);
    expect(scene.server.state.initialized).toBe(3);
  });

  it("25 receives a notification of the server after that", async () => {
    const received = notified("notifications/tools/list_changed");
    const timer = setInterval(() => void scene.server.server().sendToolListChanged(), 20);
    await received;
    clearInterval(timer);
  });

  it("26 ends with 0, and with its session, when the host closes the pipe", async () => {
    await host.client.close();
    expect([await host.exited, scene.server.sessions.size]).toEqual([0, 0]);
  });
});
