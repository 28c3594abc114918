import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type OutgoingRequest, type RequestFlags, sendRequest } from "../../../../src/cli/commands/request/run.js";
import { AgentAuthError } from "../../../../src/errors.js";
import { isRequest, toNativeFetch } from "../../../../src/http/http-message.js";
import { AccessToken } from "../../../../src/oauth/model/grant.js";
import { madeGrant } from "../../../helpers/grant.js";
import { CLOSED_PORT } from "../../../helpers/port.js";
import { loginAt } from "../../../helpers/remedy.js";
import { type Answer, startServer, until } from "../../../helpers/server.js";
import { failureOf, memoryContext } from "./support.js";

const globalFetch = toNativeFetch((input, init) => fetch(input, init));

/** Puts a token on a request as the agent does, and knows no remedy. */
const agent = {
  token: async () => new AccessToken(madeGrant()),
  fetch: (input: string | URL | Request, init: RequestInit = {}) => {
    const headers = new Headers(isRequest(input) ? [...input.headers] : undefined);
    headers.set("authorization", "Bearer access-token-1");
    return globalFetch(input, { ...init, headers });
  },
  requiresLogin: async () => true,
  status: async () => [],
  discover: async () => ({ found: undefined, trace: [], error: undefined }),
};

function send(
  url: string,
  flags: Partial<RequestFlags> = {},
  context = memoryContext({}, undefined, flags),
  more: Partial<OutgoingRequest> = {},
) {
  const request = { url, method: "GET", headers: new Headers(), ...more };
  return { context, done: sendRequest(agent, request, { url, ...flags }, context) };
}

async function answered(answer: Answer, flags: Partial<RequestFlags> = {}) {
  const { origin } = await startServer(answer);
  const { context, done } = send(`${origin}/mcp`, flags);
  const error = await done.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { origin, error, out: context.io.out(), err: context.io.err() };
}

describe("an answer's status", () => {
  it.each([200, 201, 304])("%i is no error", async (status) => {
    const { error } = await answered((response) => response.writeHead(status).end());
    expect(error).toBeUndefined();
  });

  it.each([
    [400, "http_error", "remote"],
    [401, "login_required", "auth"],
    [403, "http_error", "remote"],
    [404, "http_error", "remote"],
    [429, "rate_limited", "unavailable"],
    [500, "server_error", "unavailable"],
    [503, "server_error", "unavailable"],
  ])("%i is %s, class %s, and its body is printed all the same", async (status, code, kind) => {
    const { error, out } = await answered((response) => response.writeHead(status).end(`no ${status}`));
    expect(error).toMatchObject({ code, class: kind, status });
    expect(out).toBe(`no ${status}`);
  });

  it("names the command that helps, the wait that is asked for, and the id of the request", async () => {
    const refused = await answered((response) => response.writeHead(401).end());
    expect(refused.error).toMatchObject({ remedy: loginAt(`${refused.origin}/mcp`) });
    const headers = { "retry-after": "7", "x-request-id": "r1" };
    const busy = await answered((response) => response.writeHead(503, headers).end());
    expect(busy.error).toMatchObject({ hint: "call again in 7 s, as the server asks", requestId: "r1" });
  });
});

describe("a redirect", () => {
  it("inside the origin is followed with the token, and logged", async () => {
    const server = await startServer((response, { url }) =>
      url === "/mcp" ? response.writeHead(307, { location: "/mcp/" }).end() : response.end("there"),
    );
    const { context, done } = send(`${server.origin}/mcp`);
    await done;
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill("Bearer access-token-1"));
    expect([context.io.out(), context.io.err()]).toEqual(["there", `redirected to ${server.origin}/mcp/\n`]);
  });

  it("to another origin takes no token along, and is logged", async () => {
    const other = await startServer((response) => response.end("elsewhere"));
    const { err, out } = await answered((response) => response.writeHead(302, { location: `${other.origin}/x` }).end());
    expect(other.requests).toHaveLength(1);
    expect(JSON.stringify(other.requests)).not.toContain("access-token-1");
    expect([out, err]).toEqual(["elsewhere", expect.stringMatching(/^warning: redirected to .*\/x, another server: /)]);
  });

  it("to another origin that answers 401 says nothing about the login", async () => {
    const other = await startServer((response) => response.writeHead(401).end());
    const { error } = await answered((response) => response.writeHead(302, { location: other.origin }).end());
    expect(error).toMatchObject({ class: "remote", status: 401, url: `${other.origin}/` });
  });

  it("without end is an error", async () => {
    const { error, out } = await answered((response) => response.writeHead(302, { location: "/mcp" }).end());
    expect([error, out]).toEqual([expect.objectContaining({ class: "unavailable" }), ""]);
  });
});

describe("an answer that does not come as it should", () => {
  it("is late when it has not begun in time", async () => {
    const { error } = await answered(() => undefined, { timeout: 0.2 });
    expect(error).toMatchObject({ code: "timeout", class: "unavailable", hint: expect.stringContaining("--timeout") });
  });

  it("may take its time once it has begun", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let sendRest = () => {};
    const { origin } = await startServer((response) => {
      response.write("a");
      sendRest = () => response.end("b");
    });
    const { context, done } = send(`${origin}/mcp`, { timeout: 1 });
    while (context.io.out() !== "a") await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(1500);
    sendRest();
    await done;
    expect(context.io.out()).toBe("ab");
  });

  it("sets no limit while a user may have to log in", async () => {
    const { error } = await answered(
      (response) => {
        setTimeout(() => response.end(), 600);
      },
      { timeout: 0.3, login: true },
    );
    expect(error).toBeUndefined();
  });

  it("is an error where it breaks off, and what came before is printed", async () => {
    const { error, out } = await answered((response) => {
      response.writeHead(200, { "content-length": "10" });
      response.write("abc", () => response.destroy());
    });
    expect([error, out]).toEqual([expect.objectContaining({ class: "unavailable" }), "abc"]);
  });

  it("is an error where no server answers", async () => {
    expect(await failureOf(send(`http://127.0.0.1:${CLOSED_PORT}/mcp`).done)).toMatchObject({
      code: "connection_refused",
    });
  });

  it("is printed as it comes, and ended by a signal", async () => {
    const server = await startServer((response) => response.write("event: one\n\n"));
    const controller = new AbortController();
    const { context, done } = send(`${server.origin}/mcp`, {}, memoryContext({}, controller.signal));
    const failure = failureOf(done);
    await until(() => context.io.out() !== "");
    expect(context.io.out()).toBe("event: one\n\n");
    const reason = new AgentAuthError("aborted", "ended by SIGINT", { class: "aborted" });
    controller.abort(reason);
    expect(await failure).toBe(reason);
  });
});

it("asks for the token before it sends anything", async () => {
  const server = await startServer((response) => response.end());
  const requested: unknown[] = [];
  const url = `${server.origin}/mcp`;
  const token = (mcpUrl: string, options: { scope?: string | undefined } = {}) => {
    requested.push([mcpUrl, options.scope, server.requests.length]);
    return agent.token();
  };
  const request = { url, method: "POST", headers: new Headers({ "x-a": "1" }), body: new TextEncoder().encode("hi") };
  await sendRequest({ ...agent, token }, request, { url }, memoryContext());
  expect(requested).toEqual([[url, undefined, 0]]);
  expect(server.requests).toMatchObject([{ method: "POST", body: "hi", headers: { "x-a": "1" } }]);
});
