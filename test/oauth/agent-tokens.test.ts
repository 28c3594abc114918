import { inspect } from "node:util";
import { expect, it } from "vitest";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { memoryStore } from "../../src/store/memory.js";
import { pendingError } from "../helpers/captured.js";
import { startMcp, startScene } from "../helpers/issuer.js";

const engine = () => grantStore(memoryDriver(), { seal: "none" });

it("keeps the logins of users and of tenants apart, under the profile of the user", async () => {
  const { mcp, agent } = await startScene();
  const agents = agent({ store: engine() });
  const ann = agents.for({ tenant: "acme", user: "ann" });
  const { value } = await ann.login(mcp.url);
  expect((await agents.for({ tenant: "acme", user: "ann" }).token(mcp.url)).value).toBe(value);
  expect(await ann.status()).toMatchObject([{ profile: "ann", account: null }]);
  const others = [{ tenant: "acme", user: "bob" }, { tenant: "other", user: "ann" }, { user: "ann" }];
  for (const other of others) {
    expect(await pendingError(agents.for(other).token(mcp.url, { login: false }))).toMatchObject({
      code: "login_required",
    });
    expect(await agents.for(other).status()).toEqual([]);
  }
  expect(await pendingError(agents.token(mcp.url, { login: false }))).toMatchObject({ code: "login_required" });
  // A store of that tenant finds it.
  expect(await agents.for({ tenant: "default", user: "ann" }).status()).toEqual([]);
});

it("shares no cookie between the logins of users and of tenants, nor between two of one user", async () => {
  const { mcp, agent, clock } = await startScene();
  const agents = agent({ store: engine() });
  mcp.routes["/mcp"] = ({ headers: { authorization } }) =>
    authorization === undefined
      ? mcp.refusal()
      : { headers: { "set-cookie": `node=${authorization.replace("Bearer ", "")}` }, json: {} };
  const users = [
    { tenant: "acme", user: "ann" },
    { tenant: "acme", user: "bob" },
    { tenant: "other", user: "ann" },
  ];
  const sendAs = async (user: (typeof users)[number]) => {
    await agents.for(user).fetch(mcp.url, { method: "POST", body: "{}" });
    const { authorization = "", cookie } = mcp.requests.at(-1)?.headers ?? {};
    return [authorization.replace("Bearer ", ""), cookie];
  };
  // The first logins are of the same moment.
  for (const [nth, user] of [...users, ...users].entries()) {
    if (nth === users.length) await clock.sleep(1000, new AbortController().signal);
    await agents.for(user).login(mcp.url);
    const [token, before] = await sendAs(user);
    expect([before, await sendAs(user)]).toEqual([undefined, [token, `node=${token}`]]);
  }
});

it("lists the connections of one user in pages, whatever the query names", async () => {
  const { mcp, issuer, agent } = await startScene();
  const agents = agent({ store: engine() });
  const second = await startMcp("other", [], issuer, "/second");
  for (const user of ["ann", "bob"]) {
    const one = agents.for({ tenant: "acme", user });
    for (const server of user === "ann" ? [mcp.url, second.url] : [mcp.url]) await one.login(server);
  }
  const { connections } = agents.for({ tenant: "acme", user: "ann" });
  const first = await connections({ limit: 1 });
  const { items } = await connections({ limit: 1, cursor: first.cursor });
  expect([...first.items, ...items].map(({ server }) => server).toSorted()).toEqual([mcp.url, second.url].toSorted());
  const hostile: object = { tenant: "other", profile: "bob" };
  expect((await connections(hostile)).items.map(({ profile }) => profile)).toEqual(["ann", "ann"]);
  expect(await agents.for({ tenant: "other", user: "ann" }).connections()).toEqual({ items: [], cursor: undefined });
  expect(await pendingError(connections({ limit: 0 }))).toMatchObject({ code: "usage" });
});

it("reads the documents of an issuer once for all users, and refreshes a login once", async () => {
  const { mcp, issuer, agent, clock, log } = await startScene();
  const headers = { "cache-control": "max-age=3600" };
  issuer.routes["/pool/.well-known/oauth-authorization-server"] = () => ({ json: issuer.metadata, headers });
  const agents = agent({ store: engine() });
  for (const user of ["ann", "bob", "cid"]) await agents.for({ tenant: user, user }).login(mcp.url);
  expect(log.filter((line) => line === "as GET /pool/.well-known/oauth-authorization-server")).toHaveLength(1);
  await clock.sleep(3_600_000, new AbortController().signal);
  const sent = log.length;
  // Each request of the web app makes a client of its own.
  const tokens = await Promise.all([1, 2, 3].map(() => agents.for({ tenant: "ann", user: "ann" }).token(mcp.url)));
  expect(new Set(tokens.map(({ value }) => value)).size).toBe(1);
  expect(log.slice(sent)).toEqual(["as POST /pool/token"]);
});

it("is a client: its methods are bound, can be replaced, and print nothing", async () => {
  const { mcp, agent } = await startScene();
  const mine = agent({ loginSecret: "canary ".repeat(10) }).for({ user: "ann" });
  expect(mine).toBeInstanceOf(AgentClient);
  expect(inspect(mine)).toBe("AgentClient {}");
  const { login, token, for: another } = mine;
  await login(mcp.url);
  expect(mine.token).toBe(token);
  expect(await another({ user: "ann" }).status()).toHaveLength(1);
  mine.status = async () => [];
  expect(await mine.status()).toEqual([]);
});

it("rejects what cannot tell users apart", async () => {
  const of = (options: Partial<AgentClientOptions> = {}) => new AgentClient({ store: memoryStore(), ...options });
  const text = new TypeError("user must be a text of at least one character");
  expect(() => of().for({ user: "" })).toThrow(text);
  expect(() => of().for({} as never)).toThrow(text);
  expect(() => of().for({ tenant: "acme", user: "ann" })).toThrow(
    new TypeError("this store has no tenants: leave out tenant, or use grantStore"),
  );
  expect(() => of({ store: engine() }).for({ tenant: "", user: "ann" })).toThrow(/tenant is ""; it must be a text/);
  expect(() => of({ loginHint: "ann@example" }).for({ user: "ann" })).toThrow(
    new TypeError("loginHint names the account of one user: leave it out"),
  );
  const client = { clientId: "id", clientSecret: "secret" };
  const grant = { type: "client_credentials" } as const;
  expect(() => of({ client, grant }).for({ user: "ann" })).toThrow(
    new TypeError("a machine grant has no users: leave out the option grant"),
  );
  await expect(of().for({ user: "ann" }).status(undefined, { all: true })).rejects.toThrow(/lists no others/);
});
