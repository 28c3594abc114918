import { describe, expect, it } from "vitest";
import type { EndpointsPrompt, LoginMethod } from "../../../src/oauth/login/login-method.js";
import { pendingError } from "../../helpers/captured.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { TestLogin } from "../../helpers/login.js";
import { ISSUER, nameServers } from "../../helpers/named-network.js";
import { remedy } from "../../helpers/remedy.js";
import { until } from "../../helpers/server.js";

const REDIRECT = "http://127.0.0.1:49152/callback";
const REFUSAL = {
  code: "bad_server_metadata",
  class: "refused",
  remedy: remedy({ action: "allow", option: "allowCrossOriginEndpoints" }),
};

/** A user who is prompted about endpoints and gives the same answer each time. */
class AskedLogin extends TestLogin implements LoginMethod {
  readonly questions: EndpointsPrompt[] = [];
  readonly #answer: (prompt: EndpointsPrompt) => Promise<boolean>;

  constructor(log: string[], answer: boolean | ((prompt: EndpointsPrompt) => Promise<boolean>)) {
    super(log);
    this.#answer = typeof answer === "boolean" ? async () => answer : answer;
  }

  confirmEndpoints(prompt: EndpointsPrompt): Promise<boolean> {
    this.questions.push(prompt);
    this.log.push("person prompted");
    return this.#answer(prompt);
  }
}

/** An issuer that has the code sent to another server. */
async function startSplit() {
  const scene = await startScene();
  const other = await scene.another("other");
  scene.issuer.metadata["token_endpoint"] = `${other.issuer}/token`;
  return { ...scene, other };
}

const sent = ({ log }: Pick<Scene, "log">) => log.filter((line) => /^person|POST \/pool/.test(line));

describe("an issuer whose authorization and token endpoints have different origins", () => {
  it("is taken where the callback names the issuer", async () => {
    const { agent, mcp, issuer } = await startSplit();
    issuer.metadata["authorization_response_iss_parameter_supported"] = true;
    expect((await agent().login(mcp.url)).value).toBe("access-other-1");
    await expect(agent().beginLogin(mcp.url, REDIRECT)).resolves.toMatchObject({ overrides: [] });
  });

  it("may be allowed, which is remembered for that issuer and no other", async () => {
    const { agent, mcp, issuer, store, another, other } = await startSplit();
    await agent({ policy: { allowCrossOriginEndpoints: true } }).login(mcp.url);
    expect((await agent().login(mcp.url)).value).toBe("access-other-2");
    expect((await store.list()).map(({ overrides }) => overrides)).toEqual([["allowCrossOriginEndpoints"]]);
    const evil = await another("evil");
    evil.metadata["authorization_endpoint"] = issuer.metadata["authorization_endpoint"];
    mcp.metadata = { ...mcp.metadata, authorization_servers: [evil.issuer] };
    expect(await pendingError(agent().login(mcp.url))).toMatchObject(REFUSAL);
    expect([evil.to("/pool/register"), evil.to("/pool/token"), other.to("/pool/token").length]).toEqual([[], [], 2]);
  });

  it("is judged in a device login by the endpoint of that flow", async () => {
    const { agent, mcp, issuer, another } = await startScene();
    const pages = await another("pages");
    issuer.metadata["authorization_endpoint"] = `${pages.issuer}/authorize`;
    expect((await agent({ flow: "device" }).login(mcp.url)).value).toBe("access-as-1");
    expect(await pendingError(agent().login(mcp.url))).toMatchObject(REFUSAL);
  });
});

describe("a user who is prompted about such an issuer", () => {
  it("sees both endpoints first, and is not prompted again after a yes", async () => {
    const { agent, mcp, issuer, store, other, log } = await startSplit();
    const login = new AskedLogin(log, true);
    for (const token of ["access-other-1", "access-other-2"]) {
      expect((await agent({ login }).login(mcp.url)).value).toBe(token);
    }
    expect(login.questions).toEqual([
      {
        resource: mcp.url,
        issuer: issuer.issuer,
        authorizationEndpoint: `${issuer.issuer}/authorize`,
        tokenEndpoint: `${other.issuer}/token`,
        signal: expect.any(AbortSignal),
      },
    ]);
    expect(sent({ log })[0]).toBe("person prompted");
    expect((await store.list()).map(({ overrides }) => overrides)).toEqual([["allowCrossOriginEndpoints"]]);
  });

  it("is prompted in the first of two steps, and not in the second", async () => {
    const { agent, mcp, log } = await startSplit();
    const login = new AskedLogin(log, true);
    const begun = await agent({ login }).beginLogin(mcp.url, REDIRECT);
    expect(begun.overrides).toEqual(["allowCrossOriginEndpoints"]);
    const signal = new AbortController().signal;
    const session = await login.open({ resource: mcp.url, issuer: begun.issuer.issuer, signal });
    expect((await agent({ login }).finishLogin(begun, session)).value).toBe("access-other-1");
    expect(login.questions).toHaveLength(1);
  });

  it("ends the login with a no, which is not remembered", async () => {
    const { agent, mcp, store, log } = await startSplit();
    for (const flow of ["browser", "device"] as const) {
      const login = new AskedLogin(log, false);
      expect(await pendingError(agent({ login, flow }).login(mcp.url))).toMatchObject(REFUSAL);
      expect(await pendingError(agent({ login, flow }).login(mcp.url))).toMatchObject(REFUSAL);
      expect(login.questions).toHaveLength(2);
    }
    expect([await store.list(), sent({ log }).filter((line) => line !== "person prompted")]).toEqual([[], []]);
  });

  it("is not prompted where nothing is split, or it was allowed, or the callback names the issuer", async () => {
    const { agent, mcp, issuer, log } = await startSplit();
    const login = new AskedLogin(log, false);
    await agent({ login, policy: { allowCrossOriginEndpoints: true } }).beginLogin(mcp.url, REDIRECT);
    issuer.metadata["authorization_response_iss_parameter_supported"] = true;
    await agent({ login }).beginLogin(mcp.url, REDIRECT);
    issuer.metadata = { ...issuer.metadata, token_endpoint: `${issuer.issuer}/token` };
    await agent({ login }).login(mcp.url);
    expect(login.questions).toEqual([]);
  });

  it("is waited for until the time for a login is over, or the login is aborted", async () => {
    const { agent, mcp, log } = await startSplit();
    const signals: AbortSignal[] = [];
    const controller = new AbortController();
    const login = new AskedLogin(log, ({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const client = agent({ login, loginTimeoutMs: 20 });
    expect(await pendingError(client.login(mcp.url))).toMatchObject({ code: "timeout", class: "auth" });
    const stopped = agent({ login }).login(mcp.url, { signal: controller.signal });
    await until(() => signals.length === 2);
    controller.abort();
    expect(await pendingError(stopped)).toMatchObject({ code: "aborted" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });
});

it("a client that an issuer forgets is used once more after three registrations within a day, which is reported", async () => {
  const scene = await startScene();
  const { network, url } = nameServers(scene);
  scene.issuer.routes["/pool/authorize"] = { status: 400, text: "unknown client" };
  const [reported, traced]: string[][] = [[], []];
  const agent = scene.agent({
    network,
    onProgress: ({ text }) => void reported?.push(text),
    onTrace: ({ step, why }) => void (step === "authorization" && traced?.push(why)),
  });
  const used: string[] = [];
  for (let nth = 0; nth < 4; nth++) used.push((await agent.beginLogin(url, REDIRECT)).client.clientId);
  expect(used).toEqual(["client-as-1", "client-as-2", "client-as-3", "client-as-3"]);
  const why = "the issuer no longer knows this client";
  const again = `${why}; three were registered within a day, so that it is used once more; a client that the issuer knows beforehand avoids this`;
  const another = `${why}; another one is registered`;
  expect(traced).toEqual([another, another, again]);
  expect(reported).toEqual([`"${ISSUER}/pool": ${again}`]);
});

describe("an issuer that must have its endpoints at its own origin", () => {
  it("is accepted with its endpoints there, and without the option with endpoints elsewhere", async () => {
    const { issuer, mcp, agent, another } = await startScene();
    const other = await another("other");
    expect((await agent({ policy: { sameOriginEndpoints: true } }).login(mcp.url)).value).toBe("access-as-1");
    issuer.metadata["token_endpoint"] = `${other.issuer}/token`;
    issuer.metadata["authorization_response_iss_parameter_supported"] = true;
    expect((await agent().login(mcp.url)).value).toBe("access-other-1");
  });

  it("passes to the login method where the code goes, and whether the callback names its issuer", async () => {
    for (const promised of [true, undefined]) {
      const { issuer, mcp, login, agent } = await startScene();
      issuer.metadata["authorization_response_iss_parameter_supported"] = promised;
      await agent().login(mcp.url);
      expect(login.takers).toEqual([{ tokenEndpoint: `${issuer.issuer}/token`, promisesIss: promised === true }]);
    }
  });
});
