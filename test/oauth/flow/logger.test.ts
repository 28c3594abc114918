import { describe, expect, it } from "vitest";
import type { Logger } from "../../../src/http/transport.js";
import { pendingError } from "../../helpers/captured.js";
import { type IssuedValues, type Reply, reset, startScene, TestIssuer } from "../../helpers/issuer.js";

const SIGNAL = new AbortController().signal;

/** A logger that collects its lines, each after its level; durations are left out. */
function collector(): { lines: string[]; logger: Logger } {
  const lines: string[] = [];
  const line = (level: string) => (message: string) =>
    void lines.push(`${level} ${message.replace(/(in|after) \d+ ms/, "$1 N ms")}`);
  return { lines, logger: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") } };
}

describe("the option logger of an agent client", () => {
  it("receives a line for each request and response, failures and retries as warnings", async () => {
    const { agent, mcp, issuer } = await startScene();
    const { lines, logger } = collector();
    const metadata = issuer.routes["/pool/.well-known/oauth-authorization-server"];
    if (typeof metadata !== "function") throw new Error("the issuer has no metadata");
    const replies: Reply[] = [{ status: 503 }, reset];
    issuer.routes["/pool/.well-known/oauth-authorization-server"] = (request, nth) =>
      replies[nth - 1] ?? metadata(request, nth);
    await agent({ logger }).token(mcp.url);
    const document = `${issuer.origin}/.well-known/oauth-authorization-server/pool`;
    const appended = `${issuer.issuer}/.well-known/oauth-authorization-server`;
    expect(lines.filter((one) => one.includes(appended))).toEqual([
      `debug GET ${appended}`,
      `debug GET ${appended}: HTTP 503 in N ms`,
      `warn ${appended}: attempt 2 in N ms (HTTP 503)`,
      `debug GET ${appended}`,
      `warn GET ${appended}: connection_reset after N ms`,
      `warn ${appended}: attempt 3 in N ms (connection_reset)`,
      `debug GET ${appended}`,
      `debug GET ${appended}: HTTP 200 in N ms`,
    ]);
    expect(lines).toContain(`debug GET ${document}: HTTP 404 in N ms`);
    expect(lines).toContain(`debug POST ${issuer.issuer}/token: HTTP 200 in N ms`);
  });

  it("receives no secret and no query of a whole life, even if the issuer repeats what it was sent", async () => {
    const canary = (name: string) => (nth: number) => `canary-${name}-${nth}`;
    const names = ["accessToken", "refreshToken", "code", "clientSecret", "deviceCode"] as const;
    const issued = Object.fromEntries(names.map((name) => [name, canary(name)])) as Partial<IssuedValues>;
    const { agent, mcp, clock } = await startScene();
    const issuer = await new TestIssuer("canary", [], { issued }).start();
    issuer.serve();
    mcp.serveFor(issuer);
    mcp.accepts = () => true;
    const repeated: string[] = [];
    for (const path of ["/pool/token", "/pool/introspect", "/pool/revoke"]) {
      const reply = issuer.routes[path];
      issuer.routes[path] = async (request, nth) => {
        const form = new URLSearchParams(request.body);
        const secret = ["code", "refresh_token", "token"].flatMap((name) => form.getAll(name))[0] ?? "";
        repeated.push(secret);
        const whole = typeof reply === "function" ? await reply(request, nth) : (reply ?? {});
        return { ...whole, headers: { "x-request-id": `id-of-${secret}` } };
      };
    }
    const { lines, logger } = collector();
    const one = agent({ logger });
    try {
      await one.token(mcp.url);
      await clock.sleep(3_600_000, SIGNAL);
      await one.token(mcp.url);
      await one.introspect(mcp.url);
      await one.fetch(mcp.url);
      await one.disconnect(mcp.url);
    } finally {
      await issuer.close();
    }
    expect(repeated.filter((secret) => secret.startsWith("canary-")).length).toBeGreaterThan(3);
    expect(lines.filter((text) => text.includes('request id "id-of-********"')).length).toBeGreaterThan(3);
    expect(lines.join("\n")).not.toMatch(/canary|state=|code_challenge/i);
  });

  it("receives one line of visible characters for each event, whatever a server sends", async () => {
    const { agent, mcp, issuer } = await startScene();
    const { lines, logger } = collector();
    issuer.routes["/pool/token"] = {
      status: 400,
      // Headers are Latin-1: U+009B begins an escape sequence, as ESC [ does.
      headers: { "x-request-id": "id-\u009b31m\u0085\u00a0" },
      json: { error: "invalid_request", error_description: "\u001b[31m\nred" },
    };
    expect(await pendingError(agent({ logger }).token(mcp.url))).toMatchObject({ code: "invalid_request" });
    const text = lines.join("");
    expect(text).toContain('request id "id-\\u{9b}31m\\u{85}\\u{a0}"');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u00a0]/);
  });

  it("is called beside onEvent, and is not needed for it", async () => {
    const { agent, mcp } = await startScene();
    const { lines, logger } = collector();
    const events: string[] = [];
    const ofRequests = ["request", "response", "failure", "retry"];
    await agent({ logger, onEvent: ({ type }) => ofRequests.includes(type) && events.push(type) }).token(mcp.url);
    expect(events).toHaveLength(lines.length);
    expect(events.length).toBeGreaterThan(5);
  });
});
