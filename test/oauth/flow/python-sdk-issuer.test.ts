import { describe, expect, it } from "vitest";
import { type Scene, startScene } from "../../helpers/issuer.js";
import type { Reply, Seen } from "../../helpers/peer.js";

/** A client as an issuer of the MCP SDK for Python stores it. */
interface StoredClient {
  secret: string;
  method: string;
}

/** Who sent a request, by the rules of that SDK; a text is the reason of a refusal. */
function clientOf({ headers, body }: Seen, clients: ReadonlyMap<string, StoredClient>): string | StoredClient {
  const form = new URLSearchParams(body);
  // The form says who it is, also where the header has the identifier.
  const id = form.get("client_id");
  if (id === null) return "Missing client_id";
  const client = clients.get(id);
  if (client === undefined) return "Invalid client_id";
  let secret = form.get("client_secret");
  if (client.method === "client_secret_basic") {
    const encoded = /^Basic (.+)$/.exec(headers.authorization ?? "")?.[1];
    if (encoded === undefined) return "Missing or invalid Basic authentication in Authorization header";
    const [basicId = "", basicSecret = ""] = Buffer.from(encoded, "base64").toString().split(":");
    if (decodeURIComponent(basicId) !== id) return "Client ID mismatch in Basic auth";
    secret = decodeURIComponent(basicSecret);
  }
  return secret === client.secret ? client : "Invalid client_secret";
}

const denied = (error: string, description: string, status = 401): Reply => ({
  status,
  json: { error, error_description: description },
});

/**
 * An issuer that answers as those made with the MCP SDK for Python 1.x and 2.x do, such as FastMCP's in-memory provider:
 * `client_id` must be in the form of every request, and at the revocation endpoint `client_secret` as well, so that no client
 * of HTTP Basic alone is known.
 */
async function pythonScene(): Promise<Scene & { revoked: string[] }> {
  const scene = await startScene({ issuerPath: "" });
  const { issuer } = scene;
  const methods = ["client_secret_post", "client_secret_basic"];
  issuer.metadata["token_endpoint_auth_methods_supported"] = methods;
  issuer.metadata["revocation_endpoint_auth_methods_supported"] = methods;
  const clients = new Map<string, StoredClient>();
  const revoked: string[] = [];
  issuer.routes["/register"] = ({ body }, nth) => {
    const requested = JSON.parse(body) as Record<string, string>;
    const client = { secret: `secret-${nth}`, method: requested["token_endpoint_auth_method"] ?? "client_secret_post" };
    clients.set(`client-${nth}`, client);
    return { status: 201, json: { ...requested, client_id: `client-${nth}`, client_secret: client.secret } };
  };
  issuer.routes["/token"] = (request, nth) => {
    const client = clientOf(request, clients);
    return typeof client === "string" ? denied("invalid_client", client) : { json: issuer.tokens(nth) };
  };
  issuer.routes["/revoke"] = (request) => {
    const client = clientOf(request, clients);
    if (typeof client === "string") return denied("unauthorized_client", client);
    const form = new URLSearchParams(request.body);
    if (!form.has("client_secret")) return denied("invalid_request", "client_secret: Field required", 400);
    revoked.push(form.get("token") ?? "");
    return { status: 200, text: "" };
  };
  return { ...scene, revoked };
}

describe("an issuer made with the MCP SDK for Python", () => {
  it("gives tokens to a client whose secret is in the form, and revokes them", async () => {
    const { agent, mcp, issuer, store, revoked } = await pythonScene();
    expect((await agent().token(mcp.url)).value).toBe("access-as-1");
    expect((await agent().token(mcp.url, { forceRefresh: true })).value).toBe("access-as-2");
    expect(await store.list()).toMatchObject([{ client: { authMethod: "client_secret_post" } }]);
    expect(await agent().disconnect(mcp.url)).toMatchObject({ removed: true, revoked: true });
    expect(revoked).toEqual(["refresh-as-2", "access-as-2"]);
    const sent = ["/register", "/token", "/revoke"].map((path) => issuer.to(path).length);
    expect(sent).toEqual([1, 2, 2]);
    expect(issuer.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });
});

/** The methods that a request authenticates its client with. */
function methodsOf({ body, headers }: Seen): string[] {
  const form = new URLSearchParams(body);
  const isInForm = form.has("client_id") || form.has("client_secret");
  return [...(headers.authorization === undefined ? [] : ["basic"]), ...(isInForm ? ["form"] : [])];
}

describe("an issuer that lists HTTP Basic alone", () => {
  const CODES = ["invalid_client", "invalid_request"] as const;
  const ENDPOINTS = ["/pool/token", "/pool/introspect", "/pool/revoke", "/pool/device"];

  /** It takes one of the methods at all endpoints, and refuses the other with an error. */
  async function listingBasic(taken: "basic" | "form", error: string, methods: string[] | undefined) {
    const scene = await startScene();
    const { issuer } = scene;
    if (methods !== undefined) issuer.metadata["token_endpoint_auth_methods_supported"] = methods;
    for (const path of ENDPOINTS) {
      const answer = issuer.routes[path];
      issuer.routes[path] = (request, nth) => {
        if (methodsOf(request).join() !== taken) return denied(error, "no", error === "invalid_client" ? 401 : 400);
        return typeof answer === "function" ? answer(request, nth) : (answer ?? { status: 404 });
      };
    }
    const used = (path: string) => issuer.to(path).map((request) => methodsOf(request).join());
    return { ...scene, used };
  }

  it.each(CODES.flatMap((error) => [["client_secret_basic"], undefined].map((methods) => ({ error, methods }))))(
    "and takes the form alone, with $error for $methods, gets one more request, and that is remembered",
    async ({ error, methods }) => {
      const { agent, mcp, used, store, issuer } = await listingBasic("form", error, methods);
      await agent().login(mcp.url);
      expect(used("/pool/token")).toEqual(["basic", "form"]);
      const stored = { authMethod: "client_secret_post" };
      expect(await store.readClient(issuer.issuer, "http://127.0.0.1/callback")).toMatchObject(stored);
      await agent().token(mcp.url, { forceRefresh: true });
      await agent().introspect(mcp.url);
      await agent().login(mcp.url);
      await agent().disconnect(mcp.url);
      expect(used("/pool/token").slice(2)).toEqual(["form", "form"]);
      expect(used("/pool/introspect")).toEqual(["form"]);
      expect(used("/pool/revoke")).toEqual(["form", "form"]);
    },
  );

  it("and takes it, sees no second request, and never two methods in one", async () => {
    const { agent, mcp, used } = await listingBasic("basic", "invalid_request", ["client_secret_basic"]);
    await agent().login(mcp.url);
    await agent().token(mcp.url, { forceRefresh: true });
    await agent().introspect(mcp.url);
    await agent({ flow: "device" }).login(mcp.url);
    await agent().disconnect(mcp.url);
    for (const path of ENDPOINTS) {
      expect(used(path)).not.toEqual([]);
      expect(new Set(used(path)), path).toEqual(new Set(["basic"]));
    }
  });

  it("gets one more request in a device login, and for a machine, each time only once", async () => {
    const device = await listingBasic("form", "invalid_client", undefined);
    await device.agent({ flow: "device" }).login(device.mcp.url);
    expect(device.used("/pool/device")).toEqual(["basic", "form"]);
    expect(device.used("/pool/token")).toEqual(["form"]);
    const machine = await listingBasic("form", "invalid_client", undefined);
    const client = { clientId: "m", clientSecret: "s", issuer: machine.issuer.issuer };
    const agent = () => machine.agent({ grant: { type: "client_credentials" }, client });
    await agent().token(machine.mcp.url);
    await agent().token(machine.mcp.url, { forceRefresh: true });
    expect(machine.used("/pool/token")).toEqual(["basic", "form", "form"]);
  });

  it("refreshes a login whose method it has changed since, and keeps the new one", async () => {
    const { agent, mcp, issuer, used } = await listingBasic("basic", "invalid_client", undefined);
    await agent().login(mcp.url);
    issuer.routes["/pool/token"] = (request, nth) =>
      methodsOf(request).join() === "form" ? { json: issuer.tokens(nth) } : denied("invalid_client", "no");
    for (let nth = 0; nth < 2; nth++) await agent().token(mcp.url, { forceRefresh: true });
    expect(used("/pool/token")).toEqual(["basic", "basic", "form", "form"]);
  });

  it("and uses up the code with the first request gets the right method in the next login", async () => {
    const { agent, mcp, issuer, used } = await listingBasic("form", "invalid_client", undefined);
    const answer = issuer.routes["/pool/token"];
    const seen = new Set<string | null>();
    issuer.routes["/pool/token"] = (request, nth) => {
      const code = new URLSearchParams(request.body).get("code");
      if (seen.has(code)) return denied("invalid_grant", "used", 400);
      seen.add(code);
      return typeof answer === "function" ? answer(request, nth) : { status: 404 };
    };
    await expect(agent().login(mcp.url)).rejects.toMatchObject({ code: "invalid_grant" });
    await agent().login(mcp.url);
    expect(used("/pool/token")).toEqual(["basic", "form", "form"]);
    expect(issuer.to("/pool/register")).toHaveLength(1);
  });

  it.each<[string, Reply | "reset", string]>([
    ["a grant that is rejected", denied("invalid_grant", "no", 400), "invalid_grant"],
    ["a server that is down", { status: 503, text: "" }, "server_error"],
    ["a rejection without an OAuth error", { status: 401, text: "" }, "http_error"],
  ])("gets no second request after %s: the code may be used up", async (_what, reply, code) => {
    const { agent, mcp, issuer, used } = await listingBasic("form", "invalid_client", undefined);
    issuer.routes["/pool/token"] = () => reply as Reply;
    await expect(agent().login(mcp.url)).rejects.toMatchObject({ code });
    expect(used("/pool/token")).toEqual(["basic"]);
  });

  it("gets one more request for each token at the revocation endpoint alone, and the first error is reported", async () => {
    const { agent, mcp, issuer, used } = await listingBasic("basic", "invalid_client", undefined);
    await agent().login(mcp.url);
    issuer.routes["/pool/revoke"] = ({ headers }) =>
      denied(headers.authorization === undefined ? "invalid_client" : "invalid_request", "no", 400);
    expect(await agent().disconnect(mcp.url)).toMatchObject({ revoked: false, error: { code: "invalid_request" } });
    expect(used("/pool/revoke")).toEqual(["basic", "form", "basic", "form"]);
  });
});
