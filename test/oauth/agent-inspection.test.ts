import { expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { describeLogin, exceptionsOf } from "../../src/oauth/agent.js";
import { Secret } from "../../src/redact.js";
import { memoryStore } from "../../src/store/memory.js";
import { madeGrant } from "../helpers/grant.js";
import { startScene } from "../helpers/issuer.js";

it("lists what a login was made with, with values", () => {
  expect(exceptionsOf(madeGrant())).toEqual([]);
  const overrides = ["legacyDiscovery", "allowPrivateNetwork", "resource"];
  expect(exceptionsOf(madeGrant({ overrides, resource: "none", acceptedTokenType: "user" }))).toEqual([
    { option: "legacyDiscovery" },
    { option: "allowPrivateNetwork" },
    { option: "resource", value: "none" },
    { option: "acceptTokenType", value: "user" },
  ]);
  const grant = madeGrant();
  expect(exceptionsOf({ ...grant, namedIssuer: "https://named.example" })).toEqual([
    { option: "issuer", value: grant.issuer },
  ]);
});

it("lists the parameters of a login, each as it is sent", () => {
  const authorizationParams = { access_type: "offline", prompt: "" };
  expect(exceptionsOf(madeGrant({ authorizationParams }))).toEqual([
    { option: "authorizationParams", value: "access_type=offline" },
    { option: "authorizationParams", value: "prompt=" },
  ]);
});

const NOW = 1_800_000_000_000;
const { tokens } = madeGrant();

it("describes a login without its secrets", () => {
  expect(describeLogin(madeGrant({ account: "ann", proofKey: new Secret("key") }), NOW, "memory")).toEqual({
    profile: "default",
    server: "https://mcp.example/mcp",
    account: "ann",
    grant: "login",
    token_type: "DPoP",
    resource: "https://mcp.example/mcp",
    issuer: "https://as.example/pool",
    exceptions: [],
    client_id: "client-1",
    scope: "tools",
    expires_at: "2033-05-18T03:33:20.000Z",
    logged_in_at: "2023-11-14T22:13:20.000Z",
    state: "valid",
    refreshable: true,
    refresh_lost_at: null,
    reason: null,
    stored_in: "memory",
  });
});

it.each([
  [{}, { grant: "login", token_type: "Bearer", account: null, refreshable: true }],
  [{ account: "grant:idp" }, { grant: "idp" }],
  [{ account: "grant:client_credentials:c" }, { grant: "client-credentials" }],
  [{ account: "grant:id_jag:c" }, { grant: "id-jag" }],
  [{ tokens: { ...tokens, refreshToken: undefined } }, { refreshable: false }],
  [
    { account: "grant:jwt_bearer:w", tokens: { ...tokens, refreshToken: undefined } },
    { grant: "jwt-bearer", refreshable: true },
  ],
  [{ tokens: { ...tokens, expiresAt: NOW } }, { state: "expired", refreshable: true }],
  [
    { tokens: { ...tokens, expiresAt: undefined, scope: undefined } },
    { state: "valid", expires_at: null, scope: null },
  ],
  [{ retired: { at: 1, reason: "gone" } }, { state: "expired", refreshable: false, reason: "gone" }],
  [
    { lostRefresh: { at: 0, code: "timeout", generation: 1 } },
    { state: "valid", refresh_lost_at: "1970-01-01T00:00:00.000Z" },
  ],
])("describes %j", (over, expected) => {
  expect(describeLogin(madeGrant(over), NOW, "memory")).toMatchObject(expected);
});

it("asks a store that does not say how it is for a login that no server has", async () => {
  const { agent } = await startScene();
  const store = memoryStore();
  const reads: unknown[] = [];
  store.read = async (key) => void reads.push(key);
  delete (store as { health?: unknown }).health;
  expect(await agent({ store }).health()).toMatchObject({ ready: true });
  expect(reads).toEqual([{ profile: "health", server: "https://health.invalid/" }]);
  for (const error of [new Error("a bug"), new AgentAuthError("aborted", "m", { class: "aborted" })]) {
    store.read = () => Promise.reject(error);
    await expect(agent({ store }).health()).rejects.toBe(error);
  }
});

it("lists the logins of one account where the client is for one, and says what it cannot read", async () => {
  const { agent, mcp } = await startScene();
  for (const loginHint of ["ann", "bob"]) await agent({ loginHint }).login(mcp.url);
  const accountsOf = async (loginHint?: string, url?: string) =>
    (await agent({ loginHint }).status(url)).map(({ account }) => account);
  expect(await accountsOf()).toEqual(["ann", "bob"]);
  expect(await accountsOf("ann")).toEqual(["ann", "bob"]);
  expect(await accountsOf("ann", mcp.url)).toEqual(["ann"]);
  expect(await accountsOf(undefined, mcp.url)).toEqual(["ann", "bob"]);
  await expect(agent().for({ user: "ann" }).status(undefined, { all: true })).rejects.toThrow(
    new TypeError("a client of one user lists no others: leave out all"),
  );
});
