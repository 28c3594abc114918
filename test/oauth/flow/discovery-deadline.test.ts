import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AgentClient } from "../../../src/index.js";
import { memoryStore } from "../../../src/store/index.js";

const MCP = "https://mcp.example/mcp";
const PRM = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const ISSUER = "https://as.example/pool";
type Answer = () => Response | Promise<Response>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const delayed =
  (ms: number, answer: Answer): Answer =>
  async () => {
    await wait(ms);
    return answer();
  };
const describeMcp: Answer = () => Response.json({ resource: MCP, authorization_servers: [ISSUER] });
const challenge: Answer = () => new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });

/** A document whose body comes in 4 bytes a second and never ends. */
const drip: Answer = () =>
  new Response(
    new ReadableStream({
      async pull(controller) {
        await wait(1000);
        controller.enqueue(new TextEncoder().encode("    "));
      },
    }),
    { headers: { "content-type": "application/json" } },
  );

/** Discovers against these answers. @returns how it ended, and after how many seconds */
async function discover(answers: { mcp?: Answer; prm?: Answer; as?: Answer }, timeout?: number) {
  const { mcp = challenge, prm = describeMcp, as = () => new Response(null, { status: 404 }) } = answers;
  const fetch = async (input: string | URL | Request) => {
    const url = input instanceof Request ? input.url : String(input);
    if (url === MCP) return mcp();
    return url.startsWith("https://mcp.example") ? prm() : as();
  };
  const begun = performance.now();
  const agent = new AgentClient({
    store: memoryStore(),
    fetch: fetch as typeof globalThis.fetch,
    random: () => 0,
    timeoutMs: timeout,
  });
  const ended = agent.discover(MCP).then(({ error, trace }) => {
    const { code, class: kind, message } = error ?? {};
    return { code, kind, message, trace, seconds: (performance.now() - begun) / 1000 };
  });
  await vi.advanceTimersByTimeAsync(300_000);
  return ended;
}

describe("one document", () => {
  it.each<[string, Answer, number | undefined]>([
    ["drips", drip, undefined],
    ["drips, and each attempt may take 5 s", drip, 5000],
    ["drips, and each attempt may take a minute", drip, 60_000],
    ["never comes", () => new Promise<Response>(() => {}), undefined],
    ["fails slowly, again and again", delayed(7000, () => new Response(null, { status: 503 })), undefined],
    [
      "redirects slowly, again and again",
      delayed(6000, () => new Response(null, { status: 302, headers: { location: PRM } })),
      undefined,
    ],
  ])("ends within 15 s where it %s", async (_what, prm, timeout) => {
    const { code, kind, seconds } = await discover({ prm }, timeout);
    expect([code, kind]).toEqual(["timeout", "unavailable"]);
    expect(seconds).toBe(15);
  });

  it("is not waited for where the server asks for a longer wait than is left", async () => {
    const prm: Answer = () => new Response(null, { status: 429, headers: { "retry-after": "20" } });
    expect(await discover({ prm })).toMatchObject({ code: "rate_limited", seconds: 0 });
  });
});

describe("the whole of discovery", () => {
  it("ends within 30 s, however its parts share them", async () => {
    const slow = { mcp: delayed(14_000, challenge), prm: delayed(14_000, describeMcp), as: drip };
    const { code, kind, message, seconds } = await discover(slow);
    expect([code, kind, seconds]).toEqual(["timeout", "unavailable", 30]);
    expect(message).toBe(`discovery for ${JSON.stringify(MCP)} did not finish in 30 s`);
  });

  it("ends within 30 s where every address of the issuer drips", async () => {
    expect(await discover({ as: drip })).toMatchObject({ code: "timeout", seconds: 30 });
  });

  it("ends within 30 s where requests may take longer", async () => {
    expect(await discover({ mcp: () => new Promise<Response>(() => {}) }, 60_000)).toMatchObject({
      code: "timeout",
      seconds: 30,
    });
  });
});
