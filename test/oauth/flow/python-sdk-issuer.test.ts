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
 * `client_id` must be in the form of every request, and at the revocation endpoint `client_secret` as well, next to the
 * header of a client that is registered for HTTP Basic.
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
  it("gives tokens to a client of HTTP Basic, whose identifier is in the form too", async () => {
    const { agent, mcp, issuer, store } = await pythonScene();
    expect((await agent().token(mcp.url)).value).toBe("access-as-1");
    expect((await agent().token(mcp.url, { forceRefresh: true })).value).toBe("access-as-2");
    expect(issuer.to("/register")).toHaveLength(1);
    expect(issuer.to("/token")).toHaveLength(2);
    for (const nth of [0, 1]) {
      expect(issuer.form("/token", nth).get("client_id")).toBe("client-1");
      expect(issuer.form("/token", nth).has("client_secret")).toBe(false);
      expect(issuer.to("/token")[nth]?.headers.authorization).toBe(`Basic ${btoa("client-1:secret-1")}`);
    }
    expect(await store.list()).toMatchObject([{ client: { authMethod: "client_secret_basic" } }]);
  });

  it("revokes tokens where the secret comes in the form as well, after one second try", async () => {
    const { agent, mcp, issuer, revoked } = await pythonScene();
    await agent().login(mcp.url);
    expect(await agent().disconnect(mcp.url)).toMatchObject({ removed: true, revoked: true });
    expect(revoked).toEqual(["refresh-as-1", "access-as-1"]);
    expect(issuer.to("/revoke")).toHaveLength(3);
  });
});

describe("the second try of a revocation", () => {
  /** A logout where the issuer answers the requests to revoke a token like this. */
  async function logOut(answerTo: (form: URLSearchParams, header: string | undefined) => Reply, method?: string) {
    const { agent, mcp, issuer } = await startScene();
    if (method !== undefined) issuer.metadata["token_endpoint_auth_methods_supported"] = [method];
    await agent().login(mcp.url);
    issuer.routes["/pool/revoke"] = ({ body, headers }) => answerTo(new URLSearchParams(body), headers.authorization);
    const out = await agent().disconnect(mcp.url);
    const tries = issuer.to("/pool/revoke").map(({ body, headers }) => ({
      header: headers.authorization !== undefined,
      form: new URLSearchParams(body).has("client_secret"),
    }));
    return { out, tries };
  }
  const post = { header: false, form: true };
  const basic = { header: true, form: false };

  it("has the secret in the form alone where the client was rejected", async () => {
    const { out, tries } = await logOut((_form, header) =>
      header === undefined ? { status: 200, text: "" } : denied("invalid_client", "use the form"),
    );
    expect(out).toMatchObject({ revoked: true });
    expect(tries).toEqual([basic, post, post]);
  });

  it("is one, and the error of the first is reported", async () => {
    const { out, tries } = await logOut((form) =>
      denied(form.has("client_secret") ? "unauthorized_client" : "invalid_request", "no", 400),
    );
    expect(out).toMatchObject({ revoked: false, error: { code: "invalid_request" } });
    expect(tries).toEqual([basic, { header: true, form: true }]);
  });

  it.each<[string, Reply, string?]>([
    ["after another error", denied("unsupported_token_type", "no", 400)],
    ["where the issuer is unavailable", { status: 503, text: "" }],
    ["for a client that has its secret in the form anyway", denied("invalid_client", "no"), "client_secret_post"],
    ["for a client without a secret", denied("invalid_client", "no"), "none"],
  ])("does not follow %s", async (_what, reply, method) => {
    const { out, tries } = await logOut(() => reply, method);
    expect(out).toMatchObject({ revoked: false });
    expect(tries).toHaveLength(1);
  });
});
