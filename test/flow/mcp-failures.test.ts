import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { type PlainAnswer, sendError, sendResult } from "../mcp/plain-server.js";
import { signedInAt } from "./plain-login.js";
import { flowTest, speedUpTimers, type User } from "./support.js";

const it = flowTest();

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });

/** What a failure comes down to for a program. */
async function failureOf(run: User["run"], args: readonly string[]) {
  const { code, stderr, stdout } = await run(args, { env: { AGENTAUTH_ERRORS: "json" } });
  const { error } = JSON.parse(stderr) as { error: Record<string, unknown> };
  const { code: name, hint, status, retryable, message } = error;
  return { exit: code, name, class: error["class"], hint, status, retryable, message: String(message), stdout };
}

const nothing: PlainAnswer = () => undefined;

describe("a failure of mcp tools and mcp call", () => {
  it.for<[string, (at: string) => string[]]>([
    ["mcp tools", (at) => ["mcp", "tools", at]],
    ["mcp call", (at) => ["mcp", "call", at, "whoami"]],
  ])("of %s: a server that does not answer is given up after --timeout", async ([, args], { faults, url, user }) => {
    faults.add({ kind: "slow-headers", ms: 600_000, path: "mcp", times: 0 });
    const { exit, name, message, hint } = await failureOf(user.run, [...args(url), "--timeout", "1", "--retries", "0"]);
    expect([exit, name, message]).toEqual([5, "timeout", `${new URL(url).host}: no response in 1 s`]);
    expect(hint).toBe("--timeout <seconds> allows more time");
  });

  it("is reported like that of request", async ({ faults, url, user }) => {
    for (const [status, retryAfter] of [[401], [404], [429, "7"], [500], [503]] as const) {
      const fault = { kind: "status", status, path: "mcp", times: 0, body: "html" } as const;
      faults.add({ ...fault, ...(retryAfter !== undefined && { retryAfter }) });
      const { stdout: body, ...single } = await failureOf(user.run, ["request", url, "-d", LIST]);
      const { stdout, ...session } = await failureOf(user.run, ["mcp", "tools", url]);
      faults.clear();
      expect([body.includes("<"), stdout]).toEqual([true, ""]);
      expect(session).toEqual(single);
      expect([session.exit, session.status]).toEqual([status === 401 ? 4 : status === 404 ? 6 : 5, status]);
    }
  });

  it("names the command that logs in where the token is refused also after a refresh", async ({
    faults,
    url,
    user,
  }) => {
    faults.add({ kind: "status", status: 401, path: "mcp", times: 0 });
    const { exit, name, hint } = await failureOf(user.run, ["mcp", "call", url, "whoami"]);
    expect([exit, name, hint]).toEqual([4, "login_required", `agentauth login ${url}`]);
  });

  it("of a connection that breaks is reported as such, at the start and within a response", async ({
    faults,
    url,
    user,
  }) => {
    for (const kind of ["reset-before", "reset-mid-body"] as const) {
      faults.add({ kind, path: "mcp", times: 0 });
      const { exit, name } = await failureOf(user.run, ["mcp", "tools", url]);
      faults.clear();
      expect([kind, exit, name]).toEqual([kind, 5, "connection_reset"]);
    }
  });

  it("of a server that is not there says so", async () => {
    const server = await signedInAt(nothing);
    await server.close();
    const { exit, name, message, hint } = await failureOf(server.run, ["mcp", "tools", server.url]);
    expect([exit, name, hint]).toEqual([
      5,
      "connection_refused",
      "check that the service runs at this address and port",
    ]);
    expect(message).toContain("ECONNREFUSED");
  });

  it("that the server reports by JSON-RPC is quoted, and acts on no terminal", async () => {
    for (const status of [200, 400]) {
      const server = await signedInAt(({ id }, response) => {
        sendError(response, id, -32_000, "the shelf is \u001b[31mempty", status);
      });
      const { code, stderr } = await server.run(["mcp", "tools", server.url]);
      expect([code, stderr]).toEqual([6, expect.stringContaining("the shelf is \\e[31mempty")]);
      expect(stderr).not.toContain("\u001b");
      expect((await failureOf(server.run, ["mcp", "tools", server.url])).name).toBe("mcp_failed");
    }
  });

  it("of a server with an internal error is reported with its message", async () => {
    const server = await signedInAt(({ id }, response) => sendError(response, id, -32_603, "out of paper", 503));
    const { exit, name, message } = await failureOf(server.run, ["mcp", "tools", server.url]);
    expect([exit, name, message]).toEqual([5, "server_error", expect.stringMatching(/\(HTTP 503\): "out of paper"$/)]);
  });

  it("of a server that never takes the end of the handshake comes after --timeout", async () => {
    const server = await signedInAt(nothing, { handshake: "endless" });
    const { exit, name } = await failureOf(server.run, ["mcp", "tools", server.url, "--timeout", "1"]);
    expect([exit, name]).toEqual([5, "timeout"]);
  });
});

describe("--timeout of mcp call", () => {
  /** Reports progress every second, and returns its result after six. */
  const talkative: PlainAnswer = async ({ id, progressToken }, response) => {
    const send = (message: object) =>
      response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let progress = 1; progress <= 6; progress++) {
      if (progressToken !== undefined) {
        send({ method: "notifications/progress", params: { progressToken, progress, total: 6 } });
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    send({ id, result: { content: [{ type: "text", text: "built" }] } });
    response.end();
  };

  it("starts again when the tool reports progress", async () => {
    speedUpTimers(2);
    const server = await signedInAt(talkative);
    const { code, stdout, stderr } = await server.run(["mcp", "call", server.url, "build", "--timeout", "5"]);
    expect([code, stdout, stderr]).toEqual([0, "built\n", ""]);
  });

  it("ends a call of which nothing is heard, also when its answer has begun", async () => {
    const server = await signedInAt((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": wait\n\n");
    });
    const { exit, name } = await failureOf(server.run, ["mcp", "call", server.url, "build", "--timeout", "1"]);
    expect([exit, name]).toEqual([5, "timeout"]);
  });

  it("allows a tool to work for longer than a minute", async () => {
    speedUpTimers(30);
    const server = await signedInAt(({ id }, response) => {
      setTimeout(() => sendResult(response, id, { content: [{ type: "text", text: "at last" }] }), 62_000);
    });
    const { code, stdout, stderr } = await server.run(["mcp", "call", server.url, "build", "--timeout", "120"]);
    expect([code, stdout, stderr]).toEqual([0, "at last\n", ""]);
  });

  it("does not keep an interrupted run waiting", async () => {
    const server = await signedInAt(nothing, { handshake: "none" });
    const { child, err } = server.start(["mcp", "tools", server.url, "--timeout", "600"]);
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await until(() => server.requests.length > 0);
    child.kill("SIGINT");
    expect([await ended, err()]).toEqual([130, expect.not.stringContaining("hint")]);
  });
});

describe("mcp tools --json", () => {
  const TOOL = {
    name: "build",
    title: "Build",
    description: "Builds it.",
    icons: [{ src: "https://mcp.example/build.png", mimeType: "image/png" }],
    inputSchema: { type: "object", properties: { target: { type: "string" } }, required: ["target"] },
    outputSchema: { type: "object", properties: { size: { type: "integer" } } },
    annotations: { title: "Build", readOnlyHint: false, destructiveHint: true },
    execution: { taskSupport: "optional" },
    _meta: { "example/team": "builders" },
  };

  it("gives all that the protocol has for a tool, as it came", async () => {
    const server = await signedInAt(({ id }, response) => sendResult(response, id, { tools: [TOOL] }));
    const { code, stdout } = await server.run(["mcp", "tools", server.url, "--json"]);
    expect([code, JSON.parse(stdout)]).toEqual([0, [TOOL]]);
    const plain = await server.run(["mcp", "tools", server.url]);
    expect(plain.stdout).toBe("build\tBuilds it.\n");
  });

  it("is an empty list where a server has no tools at all", async () => {
    const server = await signedInAt(nothing, { capabilities: {} });
    const { code, stdout } = await server.run(["mcp", "tools", server.url, "--json"]);
    expect([code, stdout]).toEqual([0, "[]\n"]);
  });
});
