import { describe, expect, it, onTestFinished } from "vitest";
import { createBroker } from "../../src/broker/broker.js";
import { judgeBody, withoutHidden } from "../../src/broker/tools.js";
import { ToolPolicy } from "../../src/mcp/tool-policy.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/memory.js";
import { startDemoProvider } from "../helpers/demo-provider.js";
import { TestLogin } from "../helpers/login.js";

const POLICY = new ToolPolicy({ allow: ["read_*"] });
const bytesOf = (text: string) => new TextEncoder().encode(text);
const call = (name: unknown) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } });

describe("the body of a request", () => {
  it.each<[string, Uint8Array]>([
    ["is no UTF-8", Buffer.from('{"method":"tools/call","params":{"name":"read_\xff"}}', "latin1")],
    ["begins with a byte order mark", bytesOf('\ufeff{"method":"ping"}')],
    ["has a name twice", bytesOf('{"method":"ping","method":"tools/call"}')],
    ["is cut", bytesOf('{"method":"ping"')],
  ])("is refused where it %s, since two parsers may read it in two ways", (_what, bytes) => {
    const error = { code: -32_700, message: "the broker does not pass on what is no strict JSON" };
    expect(judgeBody(bytes, POLICY)).toEqual({ tools: [], body: "", refusal: { jsonrpc: "2.0", id: null, error } });
  });

  it.each<[string, unknown, string[]]>([
    ["a call", call("read_a"), ["read_a"]],
    ["several calls", [call("read_a"), { method: "ping" }, call("drop")], ["read_a", "drop"]],
    ["a call without a name", call(undefined), []],
    ["a call with an empty name", call(""), []],
    ["a call whose name is no text", call(7), []],
    ["another message with a name", { ...call("read_a"), method: "prompts/get" }, []],
  ])("names the tools of %s", (_what, body, tools) => {
    expect(judgeBody(bytesOf(JSON.stringify(body)), POLICY).tools).toEqual(tools);
  });
});

const UTF_7 = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_+ACIALAAi-name+ACIAOgAi-whoami"}}';

/** A broker whose server is an express app of the official SDK, and what that app has read. */
async function startDemo() {
  const demo = await startDemoProvider();
  onTestFinished(() => demo.close());
  const store = memoryStore();
  await new AgentClient({ store, login: new TestLogin() }).login(demo.mcpUrl);
  const grants = { demo: { server: demo.mcpUrl, tools: ["read_*"] } };
  const broker = createBroker(new AgentClient({ store }), { grants, clients: { job: { listen: "127.0.0.1:0" } } });
  const post = (headers: Record<string, string>, body: string | Uint8Array<ArrayBuffer>) => ({
    method: "POST",
    headers: { accept: "application/json, text/event-stream", ...headers },
    body,
  });
  return {
    names: () => demo.to("/mcp").flatMap(({ body }) => (body["params"] as { name?: string } | undefined)?.name ?? []),
    direct: (headers: Record<string, string>, body: string) => fetch(demo.mcpUrl, post(headers, body)),
    send: (headers: Record<string, string>, body: string | Uint8Array<ArrayBuffer>) =>
      broker.fetch(new Request("http://broker/demo", post(headers, body)), "job"),
  };
}

it("an express app of the official SDK reads a body by its charset, and gets none that is judged by another one", async () => {
  const { direct, send, names } = await startDemo();
  const utf7 = { "content-type": "application/json; charset=utf-7" };
  await direct(utf7, UTF_7);
  expect(names()).toEqual(["whoami"]);
  for (const type of [
    "application/json; charset=utf-7",
    "application/json; charset=utf-16le",
    "application/json; charset=utf-8; charset=utf-7",
    "application/json, application/json; charset=utf-7",
    "application/json; x=1",
    "application/json-patch+json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
  ])
    expect([type, (await send({ "content-type": type }, UTF_7)).status]).toEqual([type, 415]);
  expect((await send({}, new TextEncoder().encode(UTF_7))).status).toBe(415);
  expect((await send({ ...utf7, "content-encoding": "gzip" }, UTF_7)).status).toBe(415);
  expect(names()).toEqual(["whoami"]);
  for (const type of ["application/json", 'APPLICATION/JSON; charset="UTF-8"', "application/json;charset=utf-8"])
    expect([type, (await send({ "content-type": type }, UTF_7)).status]).toEqual([type, 200]);
  // What the policy has judged, to the letter.
  expect(names().slice(1)).toEqual(Array(3).fill("read_+ACIALAAi-name+ACIAOgAi-whoami"));
});

describe("an answer of the server", () => {
  it.each([
    ["is no list of tools", '{ "id": 12345678901234567890, "result": "tools" }'],
    ["is no JSON", "tools"],
  ])("stays as it is, byte for byte, where it %s", (_what, text) => {
    expect(withoutHidden(text, POLICY)).toBe(text);
  });

  it("loses the tools that are hidden, and no digit", () => {
    const text =
      '[{"id":12345678901234567890,"result":{"tools":[{"name":"read_a","max":0.12345678901234567890},{"name":"drop"}]}},"tools"]';
    expect(withoutHidden(text, POLICY)).toBe(text.replace(',{"name":"drop"}', ""));
  });
});
