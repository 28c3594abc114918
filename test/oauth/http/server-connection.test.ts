import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { ConnectionPool } from "../../../src/oauth/http/http.js";
import { decodeGrant, encodeGrant } from "../../../src/oauth/model/codec.js";
import { madeGrant } from "../../helpers/grant.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { ISSUER, MCP, nameServers, refusedAddress } from "../../helpers/named-network.js";
import { rejection } from "../../helpers/service.js";

const PUBLIC = "93.184.215.14";
const NEAR = ["10.0.0.7", "::1", "::ffff:10.0.0.7"];
const FORBIDDEN = ["169.254.169.254", "::ffff:169.254.169.254"];

/** A scene whose servers have names, all of them public to begin with. */
async function namedScene() {
  const scene = await startScene();
  const names = nameServers(scene);
  const agent = (options: Partial<AgentClientOptions> = {}) => scene.agent({ network: names.network, ...options });
  return { ...scene, ...names, agent };
}

const OPTION = "allowPrivateNetwork";

/** The requests that reached the issuer. */
const ofIssuer = ({ log }: Pick<Scene, "log">) => log.filter((line) => line.startsWith("as "));

describe("a server elsewhere", () => {
  it("accepts a login, where all names lead to public addresses", async () => {
    const { agent, url, log } = await namedScene();
    const client = agent();
    expect(await client.token(url)).toMatchObject({ server: url, issuer: `${ISSUER}/pool` });
    expect((await client.fetch(url)).status).toBe(200);
    expect((await client.token(url, { forceRefresh: true })).value).toBe("access-as-2");
    expect(await client.introspect(url)).toMatchObject({ active: true });
    expect(await client.disconnect(url)).toMatchObject({ removed: true, revoked: true });
    expect(log.filter((line) => line.includes("POST /pool"))).toEqual([
      "as POST /pool/register",
      "as POST /pool/token",
      "as POST /pool/token",
      "as POST /pool/introspect",
      "as POST /pool/revoke",
      "as POST /pool/revoke",
    ]);
  });

  it.each(NEAR)(
    "whose issuer's name leads to %s is refused before a request to the issuer; a flag disables the check",
    async (at) => {
      const { agent, url, zone, ...scene } = await namedScene();
      zone["as.test"] = [PUBLIC, at];
      expect(await rejection(agent().token(url))).toEqual(refusedAddress(`the host "as.test" ("${at}") leads`, OPTION));
      expect(ofIssuer(scene)).toEqual([]);
      expect(scene.login.opened).toEqual([]);
      expect((await agent({ policy: { allowPrivateNetwork: true } }).token(url)).value).toBe("access-as-1");
    },
  );

  it.each(FORBIDDEN)("whose issuer's name leads to %s is refused whatever check is disabled", async (at) => {
    const { agent, url, zone, ...scene } = await namedScene();
    zone["as.test"] = [at];
    for (const allowPrivateNetwork of [false, true]) {
      const error = await rejection(agent({ policy: { allowPrivateNetwork } }).token(url));
      expect(error).toEqual(refusedAddress("where nothing is ever sent"));
      expect(error).not.toHaveProperty("hint");
    }
    expect(ofIssuer(scene)).toEqual([]);
  });

  const WHEN: readonly [string, string, (client: ReturnType<Scene["agent"]>, url: string) => Promise<unknown>][] = [
    ["registration_endpoint", "/register", (client, url) => client.token(url)],
    ["token_endpoint", "/token", (client, url) => client.token(url)],
  ];
  it.each(WHEN)("is refused where the name of its issuer's %s leads into our network", async (field, path, ask) => {
    const { agent, url, issuer, zone, place, ...scene } = await namedScene();
    issuer.metadata[field] = `https://inner.test/pool${path}`;
    place("https://inner.test", issuer.origin);
    zone["inner.test"] = ["10.0.0.7"];
    const client = agent({ policy: { allowCrossOriginEndpoints: true } });
    expect(await rejection(ask(client, url))).toEqual(refusedAddress('the host "inner.test" ("10.0.0.7")', OPTION));
    expect(scene.log).not.toContain(`as POST /pool${path}`);
  });

  it("is refused where it names metadata of the resource in our network, and discover shows that step", async () => {
    const { agent, url, mcp } = await namedScene();
    mcp.challenge = 'Bearer resource_metadata="https://10.0.0.7/prm"';
    const { error, trace } = await agent({ policy: { allowCrossOriginMetadata: true } }).discover(url);
    expect(error).toEqual(refusedAddress('resource_metadata "https://10.0.0.7/prm"', OPTION));
    expect(trace.at(-1)).toMatchObject({
      step: "resource metadata",
      url: "https://10.0.0.7/prm",
      used: false,
      why: expect.stringContaining("private network"),
    });
  });

  it("is refused where it names an issuer in our network, and discover shows that step", async () => {
    const { agent, url, zone } = await namedScene();
    zone["as.test"] = ["10.0.0.7"];
    const { error, trace } = await agent().discover(url);
    expect(error).toEqual(refusedAddress('the host "as.test" ("10.0.0.7")', OPTION));
    expect(trace.at(-1)).toMatchObject({
      step: "server metadata",
      used: false,
      why: expect.stringContaining("as.test"),
    });
  });

  it("[40] is not followed on a redirect of its metadata into our network (2026-07-28)", async () => {
    const { agent, url, mcp } = await namedScene();
    mcp.routes[mcp.wellKnown] = { status: 302, headers: { location: "https://10.0.0.7/prm" } };
    expect(await rejection(agent().token(url))).toMatchObject({ code: "redirect_refused" });
  });

  it("is not followed into our network once it has changed where its own name leads", async () => {
    const { agent, url, zone, mcp } = await namedScene();
    mcp.routes[mcp.wellKnown] = () => {
      zone["mcp.test"] = ["10.0.0.1"];
      zone["as.test"] = ["10.0.0.7"];
      return { json: mcp.metadata };
    };
    expect(await rejection(agent().token(url))).toEqual(refusedAddress('"as.test" ("10.0.0.7")', OPTION));
  });

  it("is refused itself where it is a metadata service", async () => {
    const { agent, log } = await namedScene();
    for (const server of ["https://169.254.169.254/mcp", "https://0xA9FEA9FE/", "https://metadata.google.internal/"]) {
      for (const allowPrivateNetwork of [false, true]) {
        const error = await rejection(agent({ policy: { allowPrivateNetwork } }).token(server));
        expect(error).toEqual(refusedAddress("the MCP server's address"));
        expect((await agent({ policy: { allowPrivateNetwork } }).discover(server)).error).toEqual(
          refusedAddress("nothing is ever sent"),
        );
      }
    }
    expect(log).toEqual([]);
  });
});

describe("a server whose name leads into our network", () => {
  it("may have its issuer there, by name or written as an address, and not on this machine", async () => {
    const { agent, url, zone, issuer, mcp, place } = await namedScene();
    zone["mcp.test"] = ["10.0.0.1"];
    zone["as.test"] = ["10.0.0.7"];
    expect((await agent().token(url)).value).toBe("access-as-1");
    place("https://10.0.0.7", issuer.origin);
    mcp.metadata["authorization_servers"] = ["https://10.0.0.7/pool"];
    issuer.metadata = JSON.parse(JSON.stringify(issuer.metadata).replaceAll(ISSUER, "https://10.0.0.7"));
    expect((await agent().login(url)).issuer).toBe("https://10.0.0.7/pool");
    zone["as.test"] = ["127.0.0.1"];
    mcp.metadata["authorization_servers"] = [`${ISSUER}/pool`];
    expect(await rejection(agent().login(url))).toEqual(refusedAddress("leads to this machine", OPTION));
  });
});

describe("a server on this machine", () => {
  it("may lead anywhere but to link-local addresses", async () => {
    const { agent, mcp, issuer, login } = await startScene();
    expect((await agent().token(mcp.url)).issuer).toBe(issuer.issuer);
    for (const inner of ["https://169.254.169.254/x", "https://[fe80::1]/x"]) {
      issuer.metadata["token_endpoint"] = inner;
      expect(await rejection(agent({ policy: { allowPrivateNetwork: true } }).login(mcp.url))).toEqual(
        refusedAddress(`token_endpoint "${inner}"`),
      );
    }
    issuer.metadata["token_endpoint"] = "https://10.0.0.7/token";
    expect((await agent().discover(mcp.url)).found?.issuer.tokenEndpoint).toBe("https://10.0.0.7/token");
    expect(login.opened).toHaveLength(1);
  });
});

describe("a disabled check", () => {
  /** A login with the check disabled for an issuer in our network. */
  async function liftedScene() {
    const scene = await namedScene();
    scene.zone["as.test"] = ["10.0.0.7"];
    await scene.agent({ policy: { allowPrivateNetwork: true } }).token(scene.url);
    return scene;
  }

  it("is remembered with the login, so that everything after it needs no flag", async () => {
    const { agent, url, store } = await liftedScene();
    const [grant] = await store.list();
    expect(grant?.overrides).toEqual(["allowPrivateNetwork"]);
    expect((await agent().token(url, { forceRefresh: true })).value).toBe("access-as-2");
    expect((await store.list())[0]?.overrides).toEqual(["allowPrivateNetwork"]);
    expect((await agent().fetch(url)).status).toBe(200);
    expect(await agent().introspect(url)).toMatchObject({ active: true });
    expect((await agent().login(url)).value).toBe("access-as-3");
    expect((await agent().discover(url)).error).toBeUndefined();
    expect(await agent().disconnect(url)).toMatchObject({ removed: true, revoked: true });
    expect(await rejection(agent().token(url))).toEqual(refusedAddress('"as.test"', OPTION));
  });

  it("is remembered for that issuer only", async () => {
    const { agent, url, zone, mcp, place, another } = await liftedScene();
    const other = await another("other");
    place("https://other.test", other.origin);
    zone["other.test"] = ["10.0.0.8"];
    other.metadata = JSON.parse(JSON.stringify(other.metadata).replaceAll(other.origin, "https://other.test"));
    mcp.metadata["authorization_servers"] = ["https://other.test/pool"];
    expect(await rejection(agent().login(url))).toEqual(refusedAddress('"other.test" ("10.0.0.8")', OPTION));
    const loggedIn = await agent({ policy: { allowPrivateNetwork: true } }).login(url);
    expect(loggedIn.issuer).toBe("https://other.test/pool");
  });

  it("is not stored without the option: a refresh to an issuer that moved here is refused", async () => {
    const { agent, url, zone, store, ...scene } = await namedScene();
    await agent().token(url);
    expect((await store.list())[0]?.overrides).toEqual([]);
    zone["as.test"] = ["10.0.0.7"];
    const requested = ofIssuer(scene).length;
    expect(await rejection(agent().token(url, { forceRefresh: true }))).toEqual(refusedAddress('"as.test"', OPTION));
    expect(ofIssuer(scene)).toHaveLength(requested);
    // The session is not lost by it: once the name leads where it did, it goes on.
    zone["as.test"] = [PUBLIC];
    expect((await agent().token(url, { forceRefresh: true })).value).toBe("access-as-2");
  });

  it("of another kind is remembered too, for its issuer alone", async () => {
    const { agent, mcp, issuer, another } = await startScene();
    delete issuer.metadata["code_challenge_methods_supported"];
    expect(await rejection(agent().login(mcp.url))).toMatchObject({ code: "pkce_unsupported" });
    await agent({ policy: { allowMissingPkceMetadata: true } }).login(mcp.url);
    await agent().login(mcp.url);
    const other = await another("other");
    delete other.metadata["code_challenge_methods_supported"];
    mcp.metadata["authorization_servers"] = [other.issuer];
    expect(await rejection(agent().login(mcp.url))).toMatchObject({ code: "pkce_unsupported" });
  });

  it("goes with a login in two steps to the second", async () => {
    const { agent, url, zone, login, store } = await namedScene();
    zone["as.test"] = ["10.0.0.7"];
    const first = agent({ policy: { allowPrivateNetwork: true } });
    const prepared = await first.beginLogin(url, login.redirectUri);
    const { signal } = new AbortController();
    const session = await login.open({ resource: url, issuer: prepared.issuer.issuer, signal });
    await agent().finishLogin(prepared, session);
    expect((await store.list())[0]?.overrides).toEqual(["allowPrivateNetwork"]);
  });
});

describe("a stored login", () => {
  it("stores the checks that were disabled; one without the member has none", () => {
    const text = encodeGrant(madeGrant({ overrides: ["allowPrivateNetwork"] }));
    expect(decodeGrant(text).overrides).toEqual(["allowPrivateNetwork"]);
    const { overrides: _, ...older } = JSON.parse(text);
    expect(decodeGrant(JSON.stringify(older)).overrides).toEqual([]);
    for (const overrides of ["allowPrivateNetwork", [1], { all: true }]) {
      expect(() => decodeGrant(JSON.stringify({ ...older, overrides }))).toThrow("overrides is not a list of strings");
    }
  });
});

describe("a server whose name leads nowhere", () => {
  it("is a failure of the network, on each path", async () => {
    const { agent, url, zone, ...scene } = await namedScene();
    delete zone["mcp.test"];
    expect(await rejection(agent().token(url))).toMatchObject({ code: "dns_failed", class: "unavailable" });
    const way = new ConnectionPool({ network: scene.network }).get(url);
    expect(await rejection(way.addressPolicy())).toMatchObject({ code: "dns_failed", class: "unavailable" });
  });
});

describe("the connections of a client", () => {
  it("are one for each origin and each exception, in whatever order they are requested", async () => {
    const pool = new ConnectionPool({ network: (await namedScene()).network });
    const [one, other] = ["https://one.test/mcp", "https://other.test/mcp"];
    const exempt = madeGrant({ server: one, overrides: ["allowPrivateNetwork"] });
    const sequence = [one, one, other, one, "https://one.test/b"].map((server) => pool.get(server));
    const [first, again, another, ...back] = sequence;
    expect([again, ...back].every((connection) => connection === first)).toBe(true);
    expect(another).not.toBe(first);
    expect(pool.get(one, exempt)).not.toBe(first);
    expect(pool.get(one, madeGrant({ server: one }))).toBe(first);
  });
});

describe("without a network", () => {
  it("an address is judged as it is written, and a name is not looked up", async () => {
    const { agent, url, zone, network } = await namedScene();
    zone["as.test"] = ["10.0.0.7"];
    const { fetch } = network.connectTo(new URL(MCP), "all");
    expect((await agent({ network: undefined, fetch }).token(url)).value).toBe("access-as-1");
  });
});
