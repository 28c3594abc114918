// What the SDK promises of every runtime, in interfaces that all of them have: it is given a sandbox and tells which
// checks held. run.mjs runs it in each of them.
import { AgentClient, isAgentAuthError, ManagementClient } from "agentauth";
import { createResourceServer } from "agentauth/resource-server";
import { memoryStore } from "agentauth/store";

/** The checks of the management client; a browser can run them, too. */
export const MANAGEMENT = {
  "lists every device over several pages, in order": async ({ service, pool, devices }) => {
    const pages = [];
    for await (const page of service.devices.list({ pool_id: pool }, { pageSize: 50 }).pages()) pages.push(page);
    equal(pages.map((page) => page.items.length).join(), "50,49,21");
    const ids = pages.flatMap((page) => page.items.map(({ id }) => id));
    equal(new Set(ids).size, devices);
    const options = { pageSize: 7, concurrency: 4 };
    const together = await service.devices.list({ pool_id: pool }, options).toArray();
    equal(together.map(({ id }) => id).join(), ids.join());
  },
  "asks again after 503": async ({ service, pool, steer, events }) => {
    await steer("/faults", { kind: "status", status: 503, path: "device" });
    events.length = 0;
    equal((await service.devices.list({ pool_id: pool }, { limit: 1 }).toArray()).length, 1);
    equal(events.filter(({ type }) => type === "retry").length, 1);
  },
  "asks again after a connection that broke in the middle of the answer": async ({ service, pool, steer, events }) => {
    await steer("/faults", { kind: "reset-mid-body", path: "device" });
    events.length = 0;
    equal((await service.devices.list({ pool_id: pool }, { limit: 1 }).toArray()).length, 1);
    equal(events.filter(({ type }) => type === "retry").length, 1);
  },
  "tells the code and the class of the service's error": async ({ service }) => {
    const error = await failure(service.devices.list({ pool_id: "pool-that-is-not" }).toArray());
    equal(`${error.class} ${error.status} ${error.code}`, "remote 400 unexpected_ref_type");
    equal(JSON.parse(JSON.stringify(error)).class, "remote");
  },
  "says that nobody answers at an address": async ({ sandbox, token }) => {
    const nobody = new ManagementClient({ baseUrl: sandbox.silentOrigin, token, maxRetries: 0 });
    equal((await failure(nobody.pools.list({ domain_id: "any" }).toArray())).class, "unavailable");
  },
  "ends with the caller's signal while an answer is awaited": async ({ service, pool, steer, events }) => {
    await steer("/faults", { kind: "slow-headers", ms: 20_000, path: "device" });
    const caller = new AbortController();
    events.length = 0;
    const listing = failure(service.devices.list({ pool_id: pool }, { signal: caller.signal }).toArray());
    while (!events.some(({ type }) => type === "request")) await new Promise((resolve) => setTimeout(resolve, 5));
    caller.abort();
    equal((await listing).code, "aborted");
  },
  "gives up when an answer takes longer than the timeout": async ({ sandbox, token, pool, steer }) => {
    await steer("/faults", { kind: "slow-headers", ms: 20_000, path: "device" });
    const hasty = new ManagementClient({ baseUrl: sandbox.baseUrl, token, timeoutMs: 200, maxRetries: 0 });
    equal((await failure(hasty.devices.list({ pool_id: pool }).toArray())).code, "timeout");
  },
  "never shows the API token": async ({ service, sandbox }) => {
    equal(JSON.stringify(service).includes(sandbox.apiToken), false);
    equal(String(service).includes(sandbox.apiToken), false);
  },
};

/** The checks of the agent client, which build on one another. */
export const AGENT = {
  "needs a login, and says so, where nobody can sign in": async ({ sandbox }) => {
    const nobody = new AgentClient({ store: memoryStore() });
    equal((await failure(nobody.token(sandbox.mcpUrl))).class, "auth");
  },
  "gets a token by discovery, registration and a person": async ({ agent, sandbox, person }) => {
    const token = await agent.token(sandbox.mcpUrl);
    equal(token.resource, sandbox.mcpUrl);
    equal(token.value.length > 20, true);
    equal(person.logins, 1);
    equal((await agent.token(sandbox.mcpUrl)).value, token.value);
    equal(JSON.stringify(token).includes(token.value), false);
  },
  "refreshes without the person": async ({ agent, sandbox, person }) => {
    const before = await agent.token(sandbox.mcpUrl);
    const after = await agent.token(sandbox.mcpUrl, { forceRefresh: true });
    equal(before.value === after.value, false);
    equal(person.logins, 1);
  },
  "fetches with the token": async ({ agent, sandbox }) => {
    const response = await agent.fetch(sandbox.mcpUrl, toolsRequest());
    equal(response.status, 200);
    equal((await response.text()).includes('"inputSchema"'), true);
  },
  "renews a token that the server answers with 401, and sends the request again": async (context) => {
    const { agent, sandbox, steer, person } = context;
    const before = await agent.token(sandbox.mcpUrl);
    // The sandbox's time runs ahead: to the client the token is still good.
    await steer("/clock", { advance_ms: 3_601_000 });
    const response = await agent.fetch(sandbox.mcpUrl, toolsRequest());
    equal(response.status, 200);
    await response.text();
    equal((await agent.token(sandbox.mcpUrl)).value === before.value, false);
    equal(person.logins, 1);
  },
  "signs out": async ({ agent, sandbox }) => {
    equal((await agent.disconnect(sandbox.mcpUrl)).removed, true);
    equal((await agent.status()).length, 0);
  },
};

/** The checks of keys and signatures, at both ends; a browser can run them, too. */
export const KEYS = {
  "proves the key of a token, and takes a token with the proof of its key once": async () => {
    const { resource, sign, handler } = await createProtected();
    const prover = await createProver();
    const token = await sign({ cnf: { jkt: prover.thumbprint } });
    const proof = await prover.prove("GET", resource, token);
    const ask = async (headers) => (await handler(new Request(resource, { headers }))).status;
    equal(await ask({ authorization: `DPoP ${token}`, dpop: proof }), 200);
    equal(await ask({ authorization: `DPoP ${token}`, dpop: proof }), 401);
    const stranger = await createProver();
    const stolen = await stranger.prove("GET", resource, token);
    equal(await ask({ authorization: `DPoP ${token}`, dpop: stolen }), 401);
    equal(await ask({ authorization: `Bearer ${token}` }), 401);
  },
  "takes a good token, and neither one for another server nor one that was changed": async () => {
    const { resource, sign, handler } = await createProtected();
    const ask = async (token) =>
      (await handler(new Request(resource, { headers: { authorization: `Bearer ${token}` } }))).status;
    const good = await sign({});
    equal(await ask(good), 200);
    equal(await ask(await sign({ aud: "https://other.example/mcp" })), 401);
    equal(await ask(good.replace(/\.(.)/, (_, first) => `.${first === "e" ? "f" : "e"}`)), 401);
  },
};

/** A protected server, and what signs tokens as its issuer does. */
async function createProtected() {
  const [resource, issuer] = ["https://mcp.example/mcp", "https://auth.example/pool"];
  const { jwk, sign: signed } = await createSigner();
  const documents = {
    [`${issuer}/.well-known/oauth-authorization-server`]: { issuer, jwks_uri: `${issuer}/jwks` },
    [`${issuer}/jwks`]: { keys: [{ ...jwk, alg: "ES256" }] },
  };
  const respond = async ({ url }) =>
    documents[url] ? Response.json(documents[url]) : new Response(null, { status: 404 });
  const server = createResourceServer({ resource, authorizationServers: [issuer], fetch: respond });
  const sign = async (over) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: resource, sub: "alice", client_id: "agent", iat: now, exp: now + 300, ...over };
    return signed({ alg: "ES256", typ: "at+jwt" }, claims);
  };
  return { resource, sign, handler: server.protect((_, { verified }) => new Response(verified.subject)) };
}

/** A key, and what makes proofs of it (RFC 9449). */
async function createProver() {
  const { jwk, sign } = await createSigner();
  const prove = async (htm, htu, token) => {
    const claims = { htm, htu, ath: await sha256(token), iat: Math.floor(Date.now() / 1000), jti: crypto.randomUUID() };
    return sign({ alg: "ES256", typ: "dpop+jwt", jwk }, claims);
  };
  return { thumbprint: await sha256(JSON.stringify(jwk)), prove };
}

/** A public key, its members in the order of a thumbprint, and what signs JWTs with its other half. */
async function createSigner() {
  const curve = { name: "ECDSA", namedCurve: "P-256" };
  const { privateKey, publicKey } = await crypto.subtle.generateKey(curve, true, ["sign", "verify"]);
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", publicKey);
  const sign = async (header, claims) => {
    const text = [header, claims].map((part) => base64url(JSON.stringify(part))).join(".");
    const bytes = new TextEncoder().encode(text);
    return `${text}.${bytesText(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, bytes))}`;
  };
  return { jwk: { crv, kty, x, y }, sign };
}

const sha256 = async (text) => bytesText(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
const bytesText = (bytes) => base64url(String.fromCharCode(...new Uint8Array(bytes)));

function base64url(binary) {
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Runs checks against a sandbox, one after the other. @returns how many held, and of the others what went wrong */
export async function run(checks, sandbox) {
  const context = contextFor(sandbox);
  const result = { passed: 0, failures: [] };
  for (const [title, check] of Object.entries(checks)) {
    try {
      await check(context);
      result.passed += 1;
    } catch (error) {
      result.failures.push(`${title}: ${error?.stack ?? error}`);
    }
  }
  return result;
}

function contextFor(sandbox) {
  const events = [];
  const token = () => sandbox.apiToken;
  const person = createPerson();
  return {
    sandbox,
    token,
    person,
    events,
    pool: sandbox.pool,
    devices: sandbox.devices,
    service: new ManagementClient({ baseUrl: sandbox.baseUrl, token, onEvent: (event) => events.push(event) }),
    agent: new AgentClient({ store: memoryStore(), login: person }),
    async steer(action, body) {
      const response = await fetch(`${sandbox.origin}/_sandbox${action}`, {
        method: "POST",
        headers: { authorization: `Bearer ${sandbox.controlToken}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`the sandbox answered ${response.status}: ${await response.text()}`);
      await response.text();
    },
  };
}

/** Signs in at once: asks the authorization address without following it, and takes where it leads. */
function createPerson() {
  const person = {
    logins: 0,
    open: async () => ({
      redirectUri: "http://127.0.0.1:49152/callback",
      async authorize({ url, signal }) {
        person.logins += 1;
        const response = await fetch(url, { redirect: "manual", signal });
        await response.body?.cancel();
        return new URL(response.headers.get("location") ?? "about:blank").searchParams;
      },
      close: async () => {},
    }),
  };
  return person;
}

function toolsRequest() {
  return {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
  };
}

async function failure(promise) {
  const error = await promise.then(
    () => new Error("it succeeded"),
    (reason) => reason,
  );
  if (!isAgentAuthError(error)) throw error;
  return error;
}

function equal(actual, expected) {
  if (actual !== expected) throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
}

// Started as a program; a page imports it and calls run().
const given = globalThis.process?.env?.["RUNTIMES_SANDBOX"];
if (given !== undefined) {
  const result = await run({ ...MANAGEMENT, ...AGENT, ...KEYS }, JSON.parse(given));
  globalThis.process.stdout.write(`${JSON.stringify(result)}\n`);
}
