import { describe, expect } from "vitest";
import { type Reply, reset } from "../helpers/issuer.js";
import { until } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";
import { createService } from "./introspection-service.js";
import {
  it as base,
  countOf,
  INTROSPECTION,
  makeKey,
  outcome,
  pass,
  REFUSED,
  type Server,
  type Signer,
  startSigner,
} from "./support.js";

const METADATA = "/.well-known/oauth-authorization-server";
/** Where the metadata is looked for after that, by path. */
const METADATA_ADDRESSES = [
  "/.well-known/oauth-authorization-server/pool",
  "/.well-known/openid-configuration/pool",
  "/pool/.well-known/openid-configuration",
];

const it = base.extend("breakOff", ({ signer }) => (path: string, status = 503): void => {
  signer.issuer.routes[`/pool${path}`] = { status, text: "down" };
});

async function expectUnavailable(by: Server, token: string, seconds = 5): Promise<void> {
  const response = await by.ask(token);
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe(String(seconds));
  expect(response.headers.get("www-authenticate")).toBeNull();
  expect(await response.json()).toEqual({
    error: "temporarily_unavailable",
    error_description: "the access token could not be checked",
  });
}

/** Resolves when all requests that were sent before have reached the issuer. */
async function reachIssuer({ issuer }: Signer): Promise<void> {
  await fetch(`${issuer.origin}/reached`);
}

describe("an issuer that is down (V12)", () => {
  it.for([
    ["/jwks", 503, "server_error"],
    ["/jwks", 500, "server_error"],
    ["/jwks", 429, "rate_limited"],
    ["/jwks", 404, "http_error"],
    [METADATA, 503, "server_error"],
    [METADATA, 500, "server_error"],
    [METADATA, 429, "rate_limited"],
  ] as const)(
    "is no reason to call a token bad: %s answers %d",
    async ([path, status, code], { breakOff, server, signer }) => {
      breakOff(path, status);
      await expectUnavailable(server, await signer.sign());
      expect(server.log).toMatchObject([
        { type: "unavailable", code, detail: expect.stringMatching(new RegExp(`${path}: HTTP ${status}$`)) },
      ]);
      expect(await rejection(server.verify(await signer.sign()))).toMatchObject({
        class: "unavailable",
        retryable: true,
        message: "the access token could not be checked",
      });
    },
  );

  it("is requested twice at most for each document", async ({ breakOff, server, signer }) => {
    breakOff("/jwks");
    await expectUnavailable(server, await signer.sign());
    expect([METADATA, "/jwks"].map((path) => countOf(signer, path))).toEqual([1, 2]);
  });

  it("gets the resource server and the purpose", async ({ server, signer }) => {
    await server.verify(await signer.sign());
    expect(signer.issuer.requests.map(({ headers }) => headers)).toMatchObject(
      [METADATA, "/jwks"].map(() => ({
        accept: "application/json",
        "accept-encoding": "identity",
        "user-agent": expect.stringMatching(/^agentauth\//),
      })),
    );
  });

  it("gets a request for its metadata with each for its keys, as often as keyTtlSeconds says", async ({ signer }) => {
    const server = signer.server({ keyTtlSeconds: 20, tokenCacheSeconds: 0 });
    const token = await signer.sign({ exp: signer.clock.epoch() / 1000 + 7200 });
    await server.verify(token);
    await pass(signer, 9);
    await server.verify(token);
    await reachIssuer(signer);
    expect([METADATA, "/jwks"].map((path) => countOf(signer, path))).toEqual([1, 1]);
    await pass(signer, 11);
    await server.verify(token);
    expect([METADATA, "/jwks"].map((path) => countOf(signer, path))).toEqual([2, 2]);
  });

  it.for<[string, Parameters<typeof createService>[2]]>([
    ["resets", reset],
    ["answers 500", { status: 500, text: "" }],
    ["has too much to do", { status: 429, text: "" }],
    ["is nowhere", { status: 404, text: "" }],
  ])("is none either where its introspection endpoint %s", async ([_what, reply], { signer }) => {
    createService(signer, {}, reply);
    await expectUnavailable(signer.server({ introspection: INTROSPECTION }), "opaque");
  });

  it("is none either where the resource server cannot authenticate itself there", async ({ signer }) => {
    createService(signer, { opaque: signer.claims() });
    const introspection = { authenticate: () => Promise.reject(new Error("no key")) };
    const failing = signer.server({ introspection });
    await expectUnavailable(failing, "opaque");
    const detail = "introspection.authenticate failed, so that the issuer could not be asked";
    expect(failing.log).toMatchObject([{ type: "unavailable", code: "network_failed", detail }]);
    expect(countOf(signer, "/introspect")).toBe(0);
  });

  it("is not requested again by each request that comes while it is down", async ({ breakOff, signer, server }) => {
    breakOff(METADATA);
    const token = await signer.sign();
    await Promise.all(Array.from({ length: 20 }, () => expectUnavailable(server, token)));
    await pass(signer, 4);
    const requested = signer.issuer.requests.length;
    await expectUnavailable(server, token);
    expect(signer.issuer.requests).toHaveLength(requested);
    await pass(signer, 1);
    signer.issuer.routes[`/pool${METADATA}`] = { json: signer.issuer.metadata };
    expect((await server.ask(token)).status).toBe(200);
  });

  it("does not matter for what is refused without it", async ({ breakOff, server, signer }) => {
    breakOff(METADATA);
    expect(outcome(await server.ask(await signer.sign({ iss: "https://elsewhere.example" })))).toEqual([401, REFUSED]);
    expect((await server.ask()).status).toBe(401);
  });

  it("goes unnoticed while its keys are good, and not after", async ({ signer, server, breakOff }) => {
    const token = await signer.sign({ exp: signer.clock.epoch() / 1000 + 7200 });
    expect((await server.ask(token)).status).toBe(200);
    breakOff("/jwks");
    await pass(signer, 599);
    expect((await server.ask(token)).status).toBe(200);
    await until(() => countOf(signer, "/jwks") > 1);
    await pass(signer, 5);
    await expectUnavailable(server, token);
  });

  it("goes unnoticed for staleKeysSeconds more, and not after", async ({ signer, breakOff }) => {
    const server = signer.server({ staleKeysSeconds: 300 });
    const token = await signer.sign({ exp: signer.clock.epoch() / 1000 + 7200 });
    expect((await server.ask(token)).status).toBe(200);
    breakOff("/jwks");
    await pass(signer, 899);
    for (let i = 0; i < 2; i++) expect((await server.ask(token)).status).toBe(200);
    await pass(signer, 5);
    await expectUnavailable(server, token);
  });

  it("has its keys refreshed before they expire, once, while requests continue", async ({
    signer,
    server,
    breakOff,
  }) => {
    const token = await signer.sign({ exp: signer.clock.epoch() / 1000 + 7200 });
    await server.ask(token);
    await pass(signer, 300);
    expect((await server.ask(token)).status).toBe(200);
    await reachIssuer(signer);
    expect(countOf(signer, "/jwks")).toBe(1);
    await pass(signer, 1);
    for (let i = 0; i < 10; i++) expect((await server.ask(token)).status).toBe(200);
    await until(() => countOf(signer, "/jwks") === 2);
    await pass(signer, 299);
    breakOff("/jwks");
    expect((await server.ask(token)).status).toBe(200);
    expect(countOf(signer, "/jwks")).toBe(2);
  });
});

describe("a key that is not known (V12)", () => {
  it("is looked for once a minute, by all requests together", async ({ server, signer }) => {
    await server.ask(await signer.sign());
    const next = await makeKey("key-2");
    const token = await signer.sign({}, { kid: "key-2" }, next);
    signer.keys.push(next.jwk);
    await expectUnavailable(server, token, 60);
    expect(countOf(signer, "/jwks")).toBe(1);
    await pass(signer, 60);
    const answers = await Promise.all(Array.from({ length: 20 }, () => server.ask(token)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    for (let i = 0; i < 50; i++) await server.ask(await signer.sign({}, { kid: `made-up-${i}` }));
    expect([METADATA, "/jwks"].map((path) => countOf(signer, path))).toEqual([1, 2]);
  });

  it("may be a new one until the keys are read again, and is none when they lack it then", async ({
    server,
    signer,
  }) => {
    await server.ask(await signer.sign());
    const token = await signer.sign({}, { kid: "made-up" }, await makeKey("made-up"));
    await pass(signer, 20.5);
    await expectUnavailable(server, token, 40);
    expect(await rejection(server.verify(token))).toMatchObject({
      code: "unknown_key",
      retryable: true,
      retryAfter: 40,
    });
    expect(server.log.at(-1)).toMatchObject({ type: "unavailable", issuer: signer.issuer.issuer, code: "unknown_key" });
    await pass(signer, 39.5);
    for (let i = 0; i < 3; i++) expect(outcome(await server.ask(token))).toEqual([401, REFUSED]);
    expect(countOf(signer, "/jwks")).toBe(2);
  });

  it("is not waited for with a token that no key could make good", async ({ server, signer }) => {
    await server.ask(await signer.sign());
    for (const claims of [{ exp: 1 }, { aud: "https://far.example" }]) {
      expect(outcome(await server.ask(await signer.sign(claims, { kid: "old" })))).toEqual([401, REFUSED]);
    }
    expect(server.reasons()).toEqual(["expired", "audience"]);
    const stolen = await signer.sign({ exp: 1 }, {}, await makeKey());
    expect(outcome(await server.ask(stolen))).toEqual([401, REFUSED]);
    expect(server.log.at(-1)).toMatchObject({ reason: "signature" });
  });

  it("is none where the keys were read for it", async ({ signer, server }) => {
    const token = await signer.sign({}, { kid: "made-up" }, await makeKey("made-up"));
    for (let i = 0; i < 3; i++) expect(outcome(await server.ask(token))).toEqual([401, REFUSED]);
    expect([server.reasons(), countOf(signer, "/jwks")]).toEqual([["key", "key", "key"], 1]);
  });

  it("is remembered alone, however many are named", async ({ server, signer }) => {
    await server.ask(await signer.sign());
    const tokens = ["first", "second"].map((kid) => signer.sign({ iat: undefined }, { kid }));
    const [first, second] = await Promise.all(tokens);
    await pass(signer, 60);
    expect((await server.ask(first)).status).toBe(401);
    await expectUnavailable(server, second ?? "", 60);
    expect((await server.ask(first)).status).toBe(401);
    await pass(signer, 60);
    expect((await server.ask(second)).status).toBe(401);
    await expectUnavailable(server, first ?? "", 60);
  });

  it.for([{ kid: "another" }, { alg: "ES384" }])(
    "is none for a token that is older than the keys: %j",
    async (header, { signer, server }) => {
      const [old, key] = [signer.claims()["iat"], await makeKey("key-1", header.alg ?? "ES256")];
      await pass(signer, 62);
      await server.ask(await signer.sign());
      expect(outcome(await server.ask(await signer.sign({ iat: old }, header, key)))).toEqual([401, REFUSED]);
      await expectUnavailable(server, await signer.sign({}, header, key), 60);
      expect([server.reasons()[0], countOf(signer, "/jwks")]).toEqual(["key", 1]);
    },
  );

  it("is not looked for where the known one says no", async ({ server, signer }) => {
    await server.ask(await signer.sign());
    await pass(signer, 60);
    expect((await server.ask(await signer.sign({}, {}, await makeKey()))).status).toBe(401);
    expect([server.reasons(), countOf(signer, "/jwks")]).toEqual([["signature"], 1]);
  });

  it("may be a good one while the keys cannot be read", async ({ signer, server, breakOff }) => {
    const good = await signer.sign({ exp: signer.clock.epoch() / 1000 + 7200 });
    await server.ask(good);
    const rotated = await signer.sign({}, { kid: "key-2" }, await makeKey("key-2"));
    await pass(signer, 60);
    breakOff("/jwks");
    await expectUnavailable(server, rotated);
    const requested = countOf(signer, "/jwks");
    await expectUnavailable(server, await signer.sign({ exp: 1 }, { kid: "key-2" }));
    await pass(signer, 59);
    await expectUnavailable(server, rotated);
    expect(countOf(signer, "/jwks")).toBe(requested);
    expect((await server.ask(good)).status).toBe(200);
  });
});

describe("the documents of an issuer", () => {
  const elsewhere = "https://elsewhere.example/pool";

  it.for<[string, (issuer: string) => Record<string, unknown>, string]>([
    ["are of another issuer", () => ({ issuer: elsewhere }), "issuer_mismatch"],
    ["differ by a slash", (issuer) => ({ issuer: `${issuer}/` }), "issuer_mismatch"],
    ["name no keys", () => ({ jwks_uri: undefined }), "bad_address"],
    ["name keys on plain http elsewhere", () => ({ jwks_uri: "http://as.example/jwks" }), "bad_address"],
    ["name keys at a metadata address", () => ({ jwks_uri: "https://169.254.169.254/jwks" }), "bad_address"],
    ["name keys in a file", () => ({ jwks_uri: "file:///etc/passwd" }), "bad_address"],
    ["name keys with a password", () => ({ jwks_uri: "https://user:pass@as.example/jwks" }), "bad_address"],
  ])("are not used where they %s", async ([_what, change, code], { signer, server }) => {
    Object.assign(signer.issuer.metadata, change(signer.issuer.issuer));
    await expectUnavailable(server, await signer.sign());
    expect(server.reasons()).toEqual([code]);
  });

  it.for<[string, unknown]>([
    ["no list", { keys: "none" }],
    ["a list of something else", { keys: [5] }],
    ["nothing", {}],
  ])("must hold keys: %s", async ([_what, json], { signer, server }) => {
    signer.issuer.routes["/pool/jwks"] = { json };
    await expectUnavailable(server, await signer.sign());
    expect(server.reasons()).toEqual(["bad_envelope"]);
    const detail = `the keys of "${signer.issuer.issuer}" are no key set (RFC 7517 section 5)`;
    expect(server.log).toMatchObject([{ detail }]);
  });

  it("are not needed for addresses that the options have", async ({ signer }) => {
    const { issuer, metadata, origin } = signer.issuer;
    Object.assign(metadata, { jwks_uri: undefined, introspection_endpoint: undefined });
    createService(signer, { opaque: signer.claims() });
    const introspection = { ...INTROSPECTION, endpoint: `${origin}/pool/introspect` };
    const server = signer.server({ introspection, jwksUris: { [issuer]: `${origin}/pool/jwks` } });
    expect((await server.ask(await signer.sign())).status).toBe(200);
    expect((await server.ask("opaque")).status).toBe(200);
    expect(signer.issuer.requests.map(({ path }) => path)).toEqual(["/pool/jwks", "/pool/introspect"]);
  });

  it("are found at the addresses of RFC 8414 and OpenID Connect too", async () => {
    for (const path of METADATA_ADDRESSES) {
      const other = await startSigner();
      const { routes, metadata } = other.issuer;
      delete routes[`/pool${METADATA}`];
      routes[path] = { json: metadata };
      expect((await other.server().ask(await other.sign())).status).toBe(200);
    }
  });

  it.for<[string, Reply]>([
    ["is of another issuer", { json: { issuer: elsewhere } }],
    ["is broken", { status: 503, text: "" }],
    ["is a page", { headers: { "content-type": "text/html" }, text: "<p>" }],
  ])("are found at the next address where the one at the first %s", async ([_what, reply], { signer, server }) => {
    const { routes, metadata } = signer.issuer;
    routes[`/pool${METADATA}`] = reply;
    for (const address of METADATA_ADDRESSES) routes[address] = { json: metadata };
    expect((await server.ask(await signer.sign())).status).toBe(200);
  });

  it.for<[string, Reply, Reply, string]>([
    ["are nowhere", { status: 404, text: "" }, { status: 404, text: "" }, "no_server_metadata"],
    ["are pages", { text: "<p>" }, { headers: { "content-type": "text/html" }, text: "<p>" }, "no_server_metadata"],
    ["are broken first", { status: 503, text: "" }, { json: { issuer: elsewhere } }, "server_error"],
    ["are broken last", { json: { issuer: elsewhere } }, { status: 503, text: "" }, "issuer_mismatch"],
  ])("are reported by the first that is wrong: they %s", async ([_what, first, others, code], { signer, server }) => {
    const { routes } = signer.issuer;
    routes[`/pool${METADATA}`] = first;
    for (const address of METADATA_ADDRESSES) routes[address] = others;
    await expectUnavailable(server, await signer.sign());
    const { issuer } = signer.issuer;
    const details: Record<string, string> = {
      no_server_metadata: `the authorization server "${issuer}" publishes no metadata (RFC 8414)`,
    };
    const detail = details[code] ?? expect.any(String);
    expect(server.log).toMatchObject([{ type: "unavailable", issuer, code, detail }]);
  });

  it("lead nowhere nearer than the issuer is, unless that is allowed", async ({ signer }) => {
    const sent: string[] = [];
    const issuer = "https://as.example/pool";
    const fetch: typeof globalThis.fetch = async (input) => {
      const { url } = input as Request;
      sent.push(url);
      return Response.json(
        url.endsWith("/jwks") ? { keys: signer.keys } : { issuer, jwks_uri: "https://10.0.0.1/jwks" },
      );
    };
    const options = { authorizationServers: [issuer], fetch };
    const token = await signer.sign({ iss: issuer });
    const strict = signer.server(options);
    await expectUnavailable(strict, token);
    expect(strict.reasons()).toEqual(["bad_address"]);
    expect(sent).toEqual([`${issuer}${METADATA}`]);
    expect((await signer.server({ ...options, policy: { allowPrivateNetwork: true } }).ask(token)).status).toBe(200);
  });

  it("are requested over the network that the options bring, and judged by where names lead", async ({ signer }) => {
    const ways: string[] = [];
    const network = {
      connectTo: (server: URL) => {
        ways.push(server.href);
        const send: typeof fetch = (input, init) => {
          sent.push(new URL((input as Request).url).pathname);
          return fetch(input, init);
        };
        return { fetch: send, addressClass: async () => "loopback" as const };
      },
    };
    const sent: string[] = [];
    const unused = () => Promise.reject(new Error("not by this"));
    expect((await signer.server({ network, fetch: unused }).ask(await signer.sign())).status).toBe(200);
    expect(ways).toEqual([signer.issuer.issuer]);
    expect(sent).toEqual([`/pool${METADATA}`, "/pool/jwks"]);
  });

  it("cannot be had where the network does not know the issuer's name", async ({ signer }) => {
    const network = {
      connectTo: () => ({
        fetch: async () => Response.json({ issuer: "https://as.example/pool", jwks_uri: "https://as.example/jwks" }),
        addressClass: () => Promise.reject(Object.assign(new Error("unknown host"), { code: "ENOTFOUND" })),
      }),
    };
    const issuer = "https://as.example/pool";
    const lost = signer.server({ authorizationServers: [issuer], network });
    await expectUnavailable(lost, await signer.sign({ iss: issuer }));
    expect(lost.reasons()).toEqual(["dns_failed"]);
  });

  it("are requested once where no server answers", async ({ signer }) => {
    const fetch: typeof globalThis.fetch = async (input) => {
      sent.push((input as Request).url);
      throw new TypeError("fetch failed");
    };
    const sent: string[] = [];
    await expectUnavailable(signer.server({ fetch }), await signer.sign());
    expect(new Set(sent)).toEqual(new Set([`${signer.issuer.issuer}${METADATA}`]));
  });
});

it("a caller that goes away ends its own wait alone", async ({ signer, server }) => {
  let answer = () => {};
  signer.issuer.routes["/pool/jwks"] = async () => {
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return { json: { keys: signer.keys } };
  };
  const token = await signer.sign();
  const leaving = new AbortController();
  const gone = server.verify(token, { signal: leaving.signal });
  const stays = server.verify(token);
  await until(() => countOf(signer, "/jwks") === 1);
  leaving.abort();
  expect(await rejection(gone)).toMatchObject({ code: "aborted" });
  answer();
  expect((await stays).subject).toBe("alice");
  expect(server.log).toEqual([]);
});

it("the only caller that goes away leaves no failure to the next one", async ({ signer, server }) => {
  const { routes } = signer.issuer;
  const jwks = routes["/pool/jwks"];
  routes["/pool/jwks"] = () => new Promise(() => undefined);
  const token = await signer.sign();
  const leaving = new AbortController();
  const gone = server.verify(token, { signal: leaving.signal });
  await until(() => countOf(signer, "/jwks") === 1);
  leaving.abort();
  expect(await rejection(gone)).toMatchObject({ code: "aborted" });
  if (jwks !== undefined) routes["/pool/jwks"] = jwks;
  expect((await server.verify(token)).subject).toBe("alice");
});
