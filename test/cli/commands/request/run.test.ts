import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, vi } from "vitest";
import {
  type OutgoingRequest,
  printResponse,
  type RequestFlags,
  readRequest,
  sendRequest,
  terminalText,
} from "../../../../src/cli/commands/request/run.js";
import { AgentAuthError } from "../../../../src/errors.js";
import { isRequest, toNativeFetch } from "../../../../src/http/http-message.js";
import { AccessToken } from "../../../../src/oauth/model/grant.js";
import { temporaryFolder, unsafeIn } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { madeGrant } from "../../../helpers/grant.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { CLOSED_PORT } from "../../../helpers/port.js";
import { fc } from "../../../helpers/properties.js";
import { loginAt } from "../../../helpers/remedy.js";
import { type Answer, startServer, until } from "../../../helpers/server.js";
import { harnessTest } from "../harness.js";
import { failureOf, memoryContext } from "./support.js";

const it = harnessTest().extend(
  "request",
  ({ harness, me }) =>
    (...flags: string[]) =>
      me.run(["request", harness.url, ...flags]),
);

const CALL = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

it("sends a request with the token, and prints the response and nothing else", async ({ request }) => {
  const { code, stdout, stderr } = await request("--data", CALL);
  expect([code, stdout, stderr]).toEqual([0, expect.stringContaining('"whoami"'), ""]);
});

it("takes the body from standard input", async ({ harness, me }) => {
  const { code, stdout } = await me.run(["request", harness.url, "--data", "-"], { stdin: CALL });
  expect([code, stdout]).toEqual([0, expect.stringContaining('"whoami"')]);
});

it("exits with 4 without a login, and where the server rejects the token", async ({ harness, faults, request }) => {
  const none = await harness.user().run(["request", harness.url]);
  expect([none.code, none.stderr]).toEqual([4, expect.stringContaining(`hint: agentauth login ${harness.url}\n`)]);
  faults.add({ kind: "status", status: 401, path: "mcp", times: 0 });
  expect((await request("--data", CALL)).code).toBe(4);
});

it.for([
  [404, 6],
  [429, 5],
  [503, 5],
] as const)("exits for HTTP %i with %i, after the response is printed", async ([status, exit], { faults, request }) => {
  faults.add({ kind: "status", status, path: "mcp", times: 0 });
  const { code, stdout, stderr } = await request("--data", CALL, "--retries", "0");
  expect([code, stdout]).toEqual([exit, expect.stringMatching(/./)]);
  expect(stderr).toContain(`HTTP ${status}`);
});

it("exits with 5 where the response does not start in time", async ({ faults, request }) => {
  faults.add({ kind: "slow-headers", ms: 60_000, path: "mcp" });
  const { code, stdout, stderr } = await request("--data", CALL, "--timeout", "1", "--retries", "0");
  expect([code, stdout, stderr]).toEqual([5, "", expect.stringContaining("no response started in 1 s")]);
});

it("exits with 130 at SIGINT while it waits", async ({ harness, faults, me }) => {
  faults.add({ kind: "slow-headers", ms: 60_000, path: "mcp" });
  const before = harness.sandbox.requests.length;
  const controller = new AbortController();
  const run = me.run(["request", harness.url, "--data", CALL], { signal: controller.signal });
  while (harness.sandbox.requests.length === before) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort();
  expect((await run).code).toBe(130);
});

it("exits with 5 where the server cannot be reached", async ({ harness }) => {
  const url = `http://127.0.0.1:${CLOSED_PORT}/mcp`;
  const other = harness.user();
  const grant = madeGrant({ server: url, resource: url });
  const expiresAt = Date.now() + 3_600_000;
  await other.store.save({ ...grant, tokens: { ...grant.tokens, expiresAt, obtainedAt: Date.now() } }, undefined);
  const { code, stderr } = await other.run(["request", url, "--retries", "0"]);
  expect([code, stderr]).toEqual([5, expect.stringContaining("ECONNREFUSED")]);
});

it.for<[string, string[], RegExp]>([
  ["a body of GET", ["-X", "GET", "--data", "x"], /--method GET has no body/],
  ["a method that is none", ["-X", "A B"], /is not an HTTP method/],
  ["CONNECT", ["-X", "connect"], /--method CONNECT is not supported with a token/],
  ["TRACE", ["-X", "TRACE"], /--method TRACE is not supported with a token/],
  ["TRACK", ["-X", "track"], /--method TRACK is not supported with a token/],
  ["a body of HEAD", ["-X", "head", "--data", "x"], /--method HEAD has no body/],
  ["a header without a value", ["-H", "name"], /is not "name: value"/],
  ["a header of its own", ["-H", "Authorization: x"], /is reserved for the server's token/],
  ["a line break in a header", ["-H", "a: b\nc"], /a character that is not allowed in a header value/],
  ["a body in a file that is absent", ["--data", "@/nowhere"], /cannot be read \(ENOENT\)/],
])("refuses %s, and sends nothing", async ([_what, flags, words], { harness, request }) => {
  const before = harness.sandbox.requests.length;
  const { code, stdout, stderr } = await request(...flags);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
  expect(fixedText(stderr)).toMatchSnapshot();
  expect(harness.sandbox.requests.length).toBe(before);
});

it("refuses an address with a fragment, and one that is none", async ({ harness, me }) => {
  const fragment = await me.run(["request", `${harness.url}#x`]);
  expect([fragment.code, fragment.stderr]).toEqual([
    2,
    `error: the URL of the MCP server "${harness.url}#x" must not contain a fragment\nhint: leave out the "#"\n`,
  ]);
  expect(await me.run(["request", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
});

const encode = (text: string) => new TextEncoder().encode(text);

function shown(...pieces: Uint8Array[]): string {
  const text = terminalText();
  return pieces.map((piece) => text.push(piece)).join("") + text.end();
}

describe("bytes on a terminal", () => {
  it.each([
    ["an escape sequence", "a\u001b[31mb\n", "a\\e[31mb\n"],
    ["a C1 control", "a\u009b31mb\n", "a\\u{9b}31mb\n"],
    ["a bidi override", "a\u202eb\n", "a\\u{202e}b\n"],
    ["line breaks and tabs", "a\tb\nc\r\nd\n", "a\tb\nc\nd\n"],
    ["a carriage return that hides what was before", "a\rb\n", "a\\rb\n"],
    ["letters", "grüße 日本 ❤️\n", "grüße 日本 ❤️\n"],
    ["no line break at the end", "a", "a\n"],
    ["a carriage return at the end", "a\r", "a\\r\n"],
    ["nothing", "", ""],
  ])("%s", (_what, text, expected) => {
    expect(shown(encode(text))).toBe(expected);
    expect(shown(...[...encode(text)].map((byte) => Uint8Array.of(byte)))).toBe(expected);
  });

  it("hold back nothing of a line that is complete", () => {
    expect(terminalText().push(encode("data: 1\n\n"))).toBe("data: 1\n\n");
  });

  it("come out alike and harmless wherever they are cut", () => {
    const unit = fc.constantFrom(
      ...["a", "\r", "\n", "\r\n", "\t", "\u001b]0;x\u0007", "\u0301", "❤", "\ufe0f", "é", "日", "\u202e"],
    );
    const bytes = fc.oneof(fc.string({ unit, maxLength: 20 }).map(encode), fc.uint8Array({ maxLength: 30 }));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(30), { maxLength: 5 }), (whole, cuts) => {
        const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
        const pieces = at.slice(1).map((end, index) => whole.subarray(at[index], end));
        expect(shown(...pieces)).toBe(shown(whole));
        expect(unsafeIn(shown(whole).replaceAll("\ufffd", ""))).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("an answer", () => {
  const print = async (response: Response, tty: boolean) => {
    const written: Buffer[] = [];
    const io = createMemoryIo({ tty });
    const write = async (piece: string | Uint8Array) => void written.push(Buffer.from(piece as string));
    await printResponse(response, { ...io, stdout: { ...io.stdout, isTTY: tty, write } });
    return Buffer.concat(written);
  };
  const BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);

  it("goes into a pipe as it is", async () => {
    expect([...(await print(new Response(BYTES), false))]).toEqual([...BYTES]);
    expect((await print(new Response(null, { status: 204 }), false)).length).toBe(0);
  });

  it("goes to a terminal without what would move it", async () => {
    const text = (await print(new Response(BYTES), true)).toString();
    expect(unsafeIn(text.replaceAll("\ufffd", ""))).toEqual([]);
    expect(text).toContain("\\e");
  });

  it("is given up when it cannot be printed", async () => {
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(BYTES),
      cancel() {
        isCancelled = true;
      },
    });
    const io = createMemoryIo();
    const write = () => Promise.reject(new Error("gone"));
    const printing = printResponse(new Response(endless), { ...io, stdout: { ...io.stdout, write } });
    await expect(printing).rejects.toThrow("gone");
    expect(isCancelled).toBe(true);
  });

  it("is asked for only as fast as it is read", async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(BYTES);
      },
    });
    const io = createMemoryIo();
    const waiting: ((error: Error) => void)[] = [];
    const write = () => new Promise<void>((_, reject) => void waiting.push(reject));
    const printing = printResponse(new Response(endless), { ...io, stdout: { ...io.stdout, write } });
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect([waiting.length, pulled]).toEqual([1, expect.any(Number)]);
    expect(pulled).toBeLessThan(5);
    waiting[0]?.(new Error("gone"));
    await expect(printing).rejects.toThrow("gone");
  });
});

const URL_ = "https://mcp.example/mcp";
const read = (flags: Partial<RequestFlags>, stdin = "") =>
  readRequest({ url: URL_, ...flags }, memoryContext({ stdin }));

const bytesOf = (body = new Uint8Array()) => Buffer.from(body);

describe("a request by its flags", () => {
  it("is a GET, and with a body a POST, unless a method is given", async () => {
    expect(await read({})).toMatchObject({ url: URL_, method: "GET" });
    expect("body" in (await read({}))).toBe(false);
    expect((await read({ data: "" })).method).toBe("POST");
    expect((await read({ data: "x", method: "put" })).method).toBe("PUT");
    expect((await read({ method: "patch" })).method).toBe("PATCH");
  });

  it.each([
    ["JSON", '{"a":1}', "application/json"],
    ["a number", "5", "application/json"],
    ["another text", "a=b", "text/plain;charset=utf-8"],
    ["nothing", "", "text/plain;charset=utf-8"],
  ])("says of %s what it is", async (_what, data, type) => {
    expect((await read({ data })).headers.get("content-type")).toBe(type);
  });

  it("takes the headers that are given before its own", async () => {
    const { headers } = await read({
      data: "{}",
      header: ["Content-Type: a/b", "accept:text/plain", "X-A: 1", "x-a:  two: 3 ", "X-Empty:"],
    });
    expect([...headers].filter(([name]) => name !== "user-agent")).toEqual([
      ["accept", "text/plain"],
      ["content-type", "a/b"],
      ["x-a", "1, two: 3"],
      ["x-empty", ""],
    ]);
    expect((await read({})).headers.get("accept")).toBe("application/json, text/event-stream, */*;q=0.5");
  });

  it("takes a body from a file and from standard input, byte by byte", async () => {
    const path = join(temporaryFolder(), "body");
    writeFileSync(path, Uint8Array.of(0, 255, 10, 13));
    const { body, headers } = await read({ data: `@${path}` });
    expect([...bytesOf(body)]).toEqual([0, 255, 10, 13]);
    expect(headers.get("content-type")).toBe("application/octet-stream");
    for (const data of ["-", "@-"]) {
      expect(bytesOf((await read({ data }, "grüße\n")).body).toString()).toBe("grüße\n");
    }
  });

  it.each<[string, Partial<RequestFlags>, string]>([
    ["an address with a fragment", { url: "https://mcp.example/mcp#x" }, "fragment"],
    ["an address with an empty fragment", { url: "https://mcp.example/mcp#" }, "fragment"],
    ["an address with a password", { url: "https://a:secret@mcp.example/mcp" }, "user name or password"],
    ["an address off this machine without TLS", { url: "http://mcp.example/mcp" }, "https://"],
    ["a method that is none", { method: "A B" }, "--method"],
    ["a method that echoes the token", { method: "trace" }, "TRACE"],
    ["a GET with a body", { method: "get", data: "x" }, "no body"],
    ["a file that is not there", { data: "@/nowhere/at/all" }, "ENOENT"],
    ["a folder for a file", { data: "@/" }, "EISDIR"],
    ["a header without a colon", { header: ["Accept"] }, "name: value"],
    ["a header without a name", { header: [": x"] }, "name: value"],
    ["a blank before the colon", { header: ["Accept : x"] }, "name: value"],
    ["a header of its own behind a line break", { header: ["X-A: b\r\nX-C: d"] }, "X-A"],
    ["a line break in a name", { header: ["X\n-A: b"] }, "name: value"],
    ["a NUL in a header", { header: ["X-A: \0"] }, "X-A"],
    ["a character that is no byte", { header: ["X-A: €"] }, "X-A"],
  ])("is refused for %s", async (_what, flags, part) => {
    expect(await failureOf(read(flags))).toMatchObject({
      code: "usage",
      class: "usage",
      message: expect.stringContaining(part),
    });
  });

  it.each(["Authorization: Bearer s3cret-1", "AUTHORIZATION:Basic s3cret-1", "authorization Bearer s3cret-1"])(
    "is refused for a token of one's own, which is not shown",
    async (header) => {
      const error = await failureOf(read({ header: [header] }));
      expect(error).toMatchObject({ class: "usage", message: expect.stringMatching(/authorization/i) });
      expect(JSON.stringify(error)).not.toContain("s3cret-1");
    },
  );
});

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
