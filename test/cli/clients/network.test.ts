import { describe, expect, it } from "vitest";
import { eventLogger, tracedFetch, traceOptions } from "../../../src/cli/clients/network.js";
import { memoryContext } from "../commands/request/support.js";

type Flags = Parameters<typeof traceOptions>[0];

/** A trace by flags, what it has said so far, and the redactor that it masks with. */
function traced(flags: Flags, query = false) {
  const context = memoryContext({ verbose: true });
  const { io, redactor } = context;
  return { trace: traceOptions(flags, context, query), redactor, said: () => io.err() };
}

/** What is said of one exchange. */
async function saidOf(
  flags: Flags,
  { url = "https://mcp.example/mcp?code=of-a-query", init = {}, answer = new Response("body of the answer") } = {},
): Promise<string> {
  const { trace, redactor, said } = traced(flags);
  redactor.add("a-secret-token");
  await tracedFetch(async () => answer, trace)(url, init as RequestInit);
  return said();
}

const SENT = {
  method: "POST",
  body: "body of the request",
  headers: { authorization: "Bearer a-secret-token", "content-type": "application/json", "x-api-key": "key-of-mine" },
};

describe("what is logged of a request", () => {
  it("is nothing without a flag", async () => {
    expect(traced({}).trace).toBeUndefined();
    expect(await saidOf({})).toBe("");
  });

  it("is with -v method, address and status, without the query, headers and bodies", async () => {
    const said = await saidOf({ verbose: true }, { init: SENT });
    expect(said).toMatch(/^> POST https:\/\/mcp\.example\/mcp\n< 200 https:\/\/mcp\.example\/mcp in \d+ ms\n$/);
  });

  it("is with --debug the headers too, of which those that may be secret are masked", async () => {
    const answer = new Response("body of the answer", {
      status: 401,
      headers: {
        "content-type": "text/plain",
        "set-cookie": "session=a-cookie",
        "www-authenticate":
          'Bearer realm="a-realm", error="invalid_token", resource_metadata="https://x.example/p?a-query"',
        location: "https://client.example/cb?code=a-code",
      },
    });
    const said = await saidOf({ debug: true }, { init: SENT, answer });
    expect(said.replace(/in \d+ ms/, "in - ms").split("\n")).toEqual([
      ...["> POST https://mcp.example/mcp", ">   authorization: Bearer ********"],
      ...[">   content-type: application/json", ">   x-api-key: ********", "< 401 https://mcp.example/mcp in - ms"],
      ...["<   content-type: text/plain", "<   location: https://client.example/cb", "<   set-cookie: ********"],
      ...['<   www-authenticate: bearer: error="invalid_token" resource_metadata="https://x.example/p"', ""],
    ]);
  });

  it.each([
    ["x-request-id", "a-secret-token"],
    ["content-type", "text/plain; of=a-secret-token"],
    ["www-authenticate", 'Bearer error="a-secret-token", scope="a-secret-token"'],
    ["location", "https://client.example/a-secret-token"],
  ])("does not show the token that a server says back in %s", async (name, value) => {
    const said = await saidOf(
      { debug: true },
      { init: SENT, answer: new Response("", { headers: { [name]: value } }) },
    );
    expect(said).toContain(`<   ${name}: `);
    expect(said).toContain("********");
    expect(said).not.toContain("a-secret-token");
  });

  it("is of a Request with other headers what leaves", async () => {
    const { trace, said } = traced({ debug: true });
    const request = new Request("https://mcp.example/mcp", { method: "PUT", headers: { accept: "of/the-request" } });
    await tracedFetch(async () => new Response(""), trace)(request, { headers: { accept: "of/the-call" } });
    expect(said()).toContain("> PUT https://mcp.example/mcp\n>   accept: of/the-call\n");
  });

  it("has no user, no password, and nothing that acts on a terminal in it", async () => {
    const answer = new Response("", { headers: { "content-type": "a\u009bb" } });
    const said = await saidOf({ debug: true }, { url: "https://me:pass-of-mine@mcp.example/\u202e", answer });
    expect(said).not.toMatch(/pass-of-mine|[\u009b\u202e]/);
  });

  it.each([
    [60, 51, "<   and 11 more\n"],
    [50, 51, "<   and 1 more\n"],
    [49, 50, ""],
  ])("names no more than fifty headers, of %i and the type of the body", async (length, lines, end) => {
    const many = Object.fromEntries(Array.from({ length }, (_, index) => [`x-${index}`, "v"]));
    const said = await saidOf({ debug: true }, { answer: new Response("", { headers: many }) });
    expect(said.match(/^< {3}/gm)).toHaveLength(lines);
    expect(/^.* more\n/m.exec(said)?.[0] ?? "").toBe(end);
  });

  it("is a header by the rule for its name", async () => {
    const harmless = [
      ...["accept", "accept-encoding", "allow", "cache-control", "content-encoding", "content-length", "content-type"],
      ...["date", "expires", "keep-alive", "mcp-method", "mcp-protocol-version", "pragma", "request-id", "retry-after"],
      ...["transfer-encoding", "user-agent", "vary", "x-request-id", "connection"],
    ];
    const masked = ["authorization", "cookie", "location", "mcp-session-id", "proxy-authorization", "www-authenticate"];
    const headers = Object.fromEntries([...harmless, ...masked].map((name) => [name, "text"]));
    const said = await saidOf({ debug: true }, { answer: new Response(null, { headers }) });
    const shown = Object.fromEntries(
      [...said.matchAll(/^< {3}([\w-]+): (.*)$/gm)].map(([, name, value]) => [name, value]),
    );
    const expected = [...harmless.map((name) => [name, "text"]), ...masked.map((name) => [name, "********"])];
    expect(shown).toEqual({ ...Object.fromEntries(expected), "www-authenticate": "text:" });
  });

  it.each([
    ["authorization", "Basic abc", "Basic ********"],
    ["authorization", "a b c", "a ********"],
    ["authorization", "!x Basic abc", "********"],
    ["content-type", "x".repeat(400), "x".repeat(300)],
    ["www-authenticate", 'Bearer error="a", Basic realm="b"', 'bearer: error="a", basic:'],
    ["www-authenticate", 'Bearer scope="a b", error="c"', 'bearer: error="c" scope="a b"'],
    ["www-authenticate", "", "********"],
    ["location", "/login?code=c", "********"],
  ])("is of %s %j this", async (name, value, shown) => {
    const said = await saidOf({ debug: true }, { answer: new Response(null, { headers: { [name]: value } }) });
    expect(said).toContain(`\n<   ${name}: ${shown}\n`);
  });

  it("is the address that answered, the time that it took, and the id of the request", async () => {
    const context = memoryContext({ verbose: true });
    let now = 0;
    const trace = traceOptions({ verbose: true }, { ...context, now: () => now }, false);
    const answer = new Response("", { headers: { "x-request-id": "req-1" } });
    Object.defineProperty(answer, "url", { value: "https://other.example/to?secret" });
    const send = async () => {
      now = 1500.4;
      return answer;
    };
    await tracedFetch(send, trace)(new Request("https://mcp.example/mcp"));
    expect(context.io.err()).toBe(
      "> GET https://mcp.example/mcp\n< 200 https://other.example/to in 1500 ms, request id req-1\n",
    );
  });

  it("is no query where there is none", async () => {
    const { trace, said } = traced({ verbose: true }, true);
    await tracedFetch(async () => new Response(""), trace)("https://api.example/d");
    expect(said()).toContain("> GET https://api.example/d\n");
  });

  it("is the query too where that has no secrets", async () => {
    const { trace, said } = traced({ verbose: true }, true);
    await tracedFetch(async () => new Response(""), trace)("https://api.example/d?pagination%5Boffset%5D=20&a=%ZZ");
    expect(said()).toContain("> GET https://api.example/d?pagination[offset]=20&a=%ZZ\n");
  });

  it("is also what failed and what is tried again, with the secrets masked", () => {
    const { trace, redactor, said } = traced({ verbose: true });
    redactor.add("a-secret-token");
    const log = eventLogger(trace);
    const details = { method: "GET", url: "https://x.example/" };
    log?.({ type: "request", ...details, query: "" });
    log?.({ type: "failure", ...details, code: "timeout", message: "no a-secret-token came", ms: 1 });
    log?.({ type: "retry", url: details.url, attempt: 2, waitMs: 250, reason: "timeout" });
    expect(said()).toBe("< timeout: no ******** came\n  timeout: attempt 2 in 250 ms\n");
  });
});
