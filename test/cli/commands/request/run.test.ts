import { describe, expect } from "vitest";
import { printResponse, terminalText } from "../../../../src/cli/commands/request/run.js";
import { unsafeIn } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { madeGrant } from "../../../helpers/grant.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { CLOSED_PORT } from "../../../helpers/port.js";
import { fc } from "../../../helpers/properties.js";
import { harnessTest } from "../harness.js";

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
