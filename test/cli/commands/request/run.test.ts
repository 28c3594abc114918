import { expect } from "vitest";
import { madeGrant } from "../../../helpers/grant.js";
import { CLOSED_PORT } from "../../../helpers/port.js";
import { deskTest } from "../desk.js";

const it = deskTest().extend(
  "request",
  ({ desk, me }) =>
    (...flags: string[]) =>
      me.run(["request", desk.url, ...flags]),
);

const CALL = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

it("sends a request with the token, and prints the response and nothing else", async ({ request }) => {
  const { code, stdout, stderr } = await request("--data", CALL);
  expect([code, stdout, stderr]).toEqual([0, expect.stringContaining('"whoami"'), ""]);
});

it("takes the body from standard input, and prints the head with -i", async ({ desk, me }) => {
  const { code, stdout } = await me.run(["request", desk.url, "-i", "--data", "-"], { stdin: CALL });
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n/)]);
});

it("exits with 4 without a login, and where the server rejects the token", async ({ desk, faults, request }) => {
  const none = await desk.user().run(["request", desk.url]);
  expect([none.code, none.stderr]).toEqual([4, expect.stringContaining(`hint: agentauth login ${desk.url}\n`)]);
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

it("exits with 130 at SIGINT while it waits", async ({ desk, faults, me }) => {
  faults.add({ kind: "slow-headers", ms: 60_000, path: "mcp" });
  const before = desk.sandbox.requests.length;
  const controller = new AbortController();
  const run = me.run(["request", desk.url, "--data", CALL], { signal: controller.signal });
  while (desk.sandbox.requests.length === before) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort();
  expect((await run).code).toBe(130);
});

it("exits with 5 where the server cannot be reached", async ({ desk }) => {
  const url = `http://127.0.0.1:${CLOSED_PORT}/mcp`;
  const other = desk.user();
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
  ["a header without a value", ["-H", "name"], /is not "name: value"/],
  ["a header of its own", ["-H", "Authorization: x"], /is reserved for the server's token/],
  ["a line break in a header", ["-H", "a: b\nc"], /a character that is not allowed in a header value/],
  ["a body in a file that is absent", ["--data", "@/nowhere"], /cannot be read \(ENOENT\)/],
  [
    "a secret and a body on standard input",
    ["--data", "-", "--client-id", "x", "--client-secret-file", "-"],
    /cannot both read standard input/,
  ],
])("refuses %s, and sends nothing", async ([_what, flags, words], { desk, request }) => {
  const before = desk.sandbox.requests.length;
  const { code, stdout, stderr } = await request(...flags);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
  expect(desk.sandbox.requests.length).toBe(before);
});

it("refuses an address with a fragment, and one that is none", async ({ desk, me }) => {
  const fragment = await me.run(["request", `${desk.url}#x`]);
  expect([fragment.code, fragment.stderr]).toEqual([2, expect.stringContaining("must not contain a fragment")]);
  expect(await me.run(["request", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
});
