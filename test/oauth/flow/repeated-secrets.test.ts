import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { type Reply, startScene } from "../../helpers/issuer.js";
import type { SeenRequest } from "../../helpers/server.js";
import { shownBy } from "../../helpers/shown.js";

/** The secrets that a request sent to the issuer, in each form in which it could repeat them. */
function secretsIn({ body, headers }: SeenRequest): string[] {
  const form = new URLSearchParams(body);
  const names = ["code", "code_verifier", "refresh_token", "client_secret", "token", "device_code", "assertion"];
  const basic = headers.authorization?.replace("Basic ", "");
  const decoded = basic === undefined ? [] : [basic, atob(basic).split(":")[1] ?? ""];
  return [...names.flatMap((name) => form.getAll(name)), ...decoded].filter(Boolean);
}

const JSON_TYPE = { "content-type": "application/json" };

/** Where a server may repeat what it received. */
const places: [string, (secret: string) => Reply][] = [
  ["expires_in", (said) => ({ json: { access_token: "another-token", token_type: "Bearer", expires_in: said } })],
  ["the token type", (said) => ({ json: { access_token: "another-token", token_type: said } })],
  ["its error", (said) => ({ status: 400, json: { error: said } })],
  ["the words of its error", (said) => ({ status: 400, json: { error: "no", error_description: `not ${said}` } })],
  ["the type of its content", (said) => ({ headers: { "content-type": `text/${said}` }, text: "x" })],
  ["the coding of its content", (said) => ({ headers: { ...JSON_TYPE, "content-encoding": `a,${said}` }, text: "{}" })],
  ["the address that it redirects to", (said) => ({ status: 307, headers: { location: `/${said}` }, text: "" })],
  ["a name that comes twice", (said) => ({ headers: JSON_TYPE, text: `{"${said}":1,"${said}":2}` })],
  [
    "a name of a form that comes twice",
    (said) => ({ headers: { "content-type": "application/x-www-form-urlencoded" }, text: `${said}=1&${said}=2` }),
  ],
];

describe.each(places)("a secret that an issuer repeats in %s", (_where, reply) => {
  it.each(["client_secret_basic", "client_secret_post"])("is not shown, with %s", async (method) => {
    const { agent, mcp, issuer, clock } = await startScene();
    issuer.metadata["token_endpoint_auth_methods_supported"] = [method];
    await agent().login(mcp.url);
    await clock.sleep(3_600_000, new AbortController().signal);
    let heard = 0;
    // One secret at a time, for each of those in a request.
    for (let nth = 0; nth < 4; nth++) {
      let sent: string[] = [];
      for (const path of ["/pool/token", "/pool/introspect", "/pool/revoke"]) {
        issuer.routes[path] = (request) => {
          sent = secretsIn(request);
          return reply(sent[nth % sent.length] ?? "");
        };
      }
      const one = agent();
      const works = [
        () => one.token(mcp.url, { login: false }),
        () => one.introspect(mcp.url),
        () => one.login(mcp.url),
      ];
      for (const work of works) {
        const outcome = await work().catch((error: unknown) => error);
        heard += sent.length;
        for (const secret of sent) expect(shownBy(outcome)).not.toContain(secret);
      }
    }
    expect(heard).toBeGreaterThan(10);
    const out = await agent().disconnect(mcp.url);
    expect(out.removed).toBe(true);
    expect(shownBy(out)).not.toMatch(/access-as|refresh-as|secret-as/);
  });

  it("is not shown where it is a device's code, an assertion, or a client's secret in the form that Basic sends", async () => {
    const { agent, mcp, issuer } = await startScene();
    const payload = Buffer.from(JSON.stringify({ aud: issuer.issuer, exp: 4_102_444_800 })).toString("base64url");
    const assertion = `eyJhbGciOiJub25lIn0.${payload}.c2lnbmF0dXJl`;
    const client = {
      clientId: "known",
      clientSecret: "a secret/with+signs",
      authMethod: "client_secret_basic",
    } as const;
    const ways: Partial<AgentClientOptions>[] = [
      { flow: "device" },
      { client, grant: { type: "jwt_bearer", assertion: async () => assertion, workload: "ci" } },
    ];
    let heard = 0;
    for (const way of ways) {
      for (let nth = 0; nth < 3; nth++) {
        let sent: string[] = [];
        issuer.routes["/pool/token"] = (request) => {
          sent = secretsIn(request);
          return reply(sent[nth % sent.length] ?? "");
        };
        const outcome = await agent({ store: memoryStore(), ...way })
          .token(mcp.url)
          .catch((error: unknown) => error);
        heard += sent.length;
        for (const secret of sent) expect(shownBy(outcome)).not.toContain(secret);
      }
    }
    expect(heard).toBeGreaterThan(8);
  });
});

describe("an issuer's code", () => {
  it.each(["timeout", "connection_reset", "bad_json", "x".repeat(65)])(
    "is not taken for one of ours: %s",
    async (error) => {
      const { agent, mcp, issuer, clock } = await startScene();
      await agent().login(mcp.url);
      await clock.sleep(3_600_000, new AbortController().signal);
      issuer.routes["/pool/token"] = { status: 429, json: { error } };
      expect(await pendingError(agent().token(mcp.url))).toMatchObject({ code: "http_error", class: "unavailable" });
      expect(issuer.to("/pool/token")).toHaveLength(2);
    },
  );

  it("that asks for a login does not end a token that still lives", async () => {
    const { agent, mcp, issuer, clock, login } = await startScene();
    await agent().login(mcp.url);
    await clock.sleep(3_570_000, new AbortController().signal);
    issuer.routes["/pool/token"] = { status: 400, json: { error: "login_required" } };
    expect((await agent().token(mcp.url)).value).toBe("access-as-1");
    expect(login.opened).toHaveLength(1);
  });
});

describe("an issuer's words", () => {
  const wordsOf = async (words: (request: SeenRequest) => string) => {
    const { agent, mcp, issuer } = await startScene();
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
    issuer.routes["/pool/token"] = (request) => ({
      status: 400,
      json: { error: "invalid_request", error_description: words(request) },
    });
    const client = { clientId: "service", clientSecret: "se+cret/with space", issuer: issuer.issuer };
    const error = await agent({ client })
      .login(mcp.url)
      .catch((thrown: unknown) => thrown);
    return String((error as Error).message);
  };

  it("about ways to authenticate stay readable", async () => {
    const words = "use Basic authentication, or a Bearer token; code=expected";
    expect(await wordsOf(() => words)).toContain(words);
  });

  it.each<[string, (secret: string) => string]>([
    ["encoded for an address", encodeURIComponent],
    ["encoded for a form", (secret) => new URLSearchParams({ a: secret }).toString().slice(2)],
    ["in base64", (secret) => Buffer.from(secret).toString("base64")],
    ["in base64url", (secret) => Buffer.from(secret).toString("base64url")],
  ])("show no secret of the request %s", async (_how, form) => {
    for (const secret of ["se+cret/with space", "the code"]) {
      let said = "";
      const message = await wordsOf(({ body }) => {
        said = form(secret === "the code" ? (new URLSearchParams(body).get("code") ?? "") : secret);
        return `not ${said}`;
      });
      expect(said.length).toBeGreaterThan(6);
      expect(message).not.toContain(said.replace(/=+$/, ""));
      expect(message).toContain("not ********");
    }
  });
});
