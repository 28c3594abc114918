import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { until } from "../helpers/server.js";
import { EVENTS, startLossyServer } from "./lossy-server.js";
import { sendError, sendResult, startPlainServer } from "./plain-server.js";
import { startHost } from "./stdio-host.js";

/** A server with these tools, two on a page, which answers a call with its name and that of the tool. */
function startTools(server: string, ...tools: string[]) {
  return startPlainServer(({ id, method, params }, response) => {
    if (method === "tools/call") {
      return sendResult(response, id, { content: [{ type: "text", text: `${server} ${params["name"]}` }] });
    }
    const from = Number(params["cursor"] ?? 0);
    const page = tools.slice(from, from + 2).map((name) => ({ name, inputSchema: { type: "object" } }));
    const next = from + 2 < tools.length && { nextCursor: String(from + 2) };
    return sendResult(response, id, { tools: page, ...next });
  });
}

const namesOf = (result: unknown) => (result as { tools: { name: string }[] }).tools.map(({ name }) => name);

describe("several servers behind one entry", () => {
  it("are one server with the tools of all, each under the name of its server", async () => {
    const [docs, mail] = [await startTools("docs", "a", "b", "c"), await startTools("mail", "a", "x__y")];
    const host = startHost({ docs: docs.url, mail: mail.url });
    const { result } = await host.begin();
    expect(result).toMatchObject({ protocolVersion: "2025-11-25", capabilities: { tools: { listChanged: true } } });
    expect(namesOf((await host.ask(1, "tools/list")).result)).toEqual([
      "docs__a",
      "docs__b",
      "docs__c",
      "mail__a",
      "mail__x__y",
    ]);
    expect((await host.call(2, "mail__x__y")).result?.content).toEqual([{ type: "text", text: "mail x__y" }]);
    expect((await host.call(3, "docs__a")).result?.content).toEqual([{ type: "text", text: "docs a" }]);
    expect((await host.ask(4, "ping")).result).toEqual({});
    expect((await host.ask(5, "prompts/list")).error?.code).toBe(-32_601);
    for (const name of ["a", "other__a", "docs_a", ""])
      expect((await host.call(name, name)).error?.message).toContain("no server has the tool");
    host.end();
    await host.done;
  });

  it("obey one policy, with the name of the server or without", async () => {
    const [docs, mail] = [await startTools("docs", "read", "drop"), await startTools("mail", "read", "send")];
    const host = startHost({ docs: docs.url, mail: mail.url }, { tools: { hide: ["drop", "mail__s*"] } });
    await host.begin();
    expect(namesOf((await host.ask(1, "tools/list")).result)).toEqual(["docs__read", "mail__read"]);
    expect((await host.call(2, "mail__Send")).error?.message).toContain('hidden by "mail__s*"');
    expect((await host.call(3, "docs__drop")).error?.message).toContain('hidden by "drop"');
    expect([...docs.requests, ...mail.requests].filter(({ body }) => body.includes("tools/call"))).toEqual([]);
  });

  it("work without one that refuses the session, or whose list fails", async () => {
    const docs = await startTools("docs", "a");
    const down = await startPlainServer(({ id }, response) => sendError(response, id, -32_000, "broken"));
    const host = startHost({ docs: docs.url, gone: "http://127.0.0.1:9/mcp", down: down.url });
    await host.begin();
    expect(namesOf((await host.ask(1, "tools/list")).result)).toEqual(["docs__a"]);
    expect((await host.call(2, "gone__a")).error?.message).toContain("no server has the tool");
    expect(host.warnings.join("\n")).toMatch(/initialize.*the tools of "down" are missing: broken/s);
  });

  it("fail with the first error if all refuse the session", async () => {
    const refusal = new AgentAuthError("login_required", "no", { class: "auth", hint: "agentauth login x" });
    const host = startHost(
      { a: "http://127.0.0.1:9/a", b: "http://127.0.0.1:9/b" },
      { fetch: () => Promise.reject(refusal) },
    );
    host.send({ id: 1, method: "initialize", params: {} });
    await expect(host.done).rejects.toMatchObject({ code: "login_required" });
    expect((await host.answerTo(1)).error?.message).toBe("no; run: agentauth login x");
  });

  it("cancel at the server that works on a request, and send no response", async () => {
    const [docs, mail] = [await startLossyServer({ answer: () => undefined }), await startTools("mail", "a")];
    const host = startHost({ docs: docs.url, mail: mail.url });
    await host.begin();
    host.send({ id: 1, method: "tools/call", params: { name: "docs__slow" } });
    await until(() => docs.of("tools/call").length === 1);
    host.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    await until(() => docs.of("notifications/cancelled").length === 1);
    expect(docs.of("notifications/cancelled")[0]?.params?.["requestId"]).toBe(docs.of("tools/call")[0]?.id);
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect(mail.requests.some(({ body }) => body.includes("cancelled"))).toBe(false);
    expect(host.received.some(({ id }) => id === 1)).toBe(false);
  });

  it("keep their requests to the host apart, whatever their ids", async () => {
    const servers = [await startLossyServer(), await startLossyServer()];
    const [one, two] = servers;
    const host = startHost({ one: one?.url ?? "", two: two?.url ?? "" });
    await host.begin();
    await until(() => servers.every(({ streams }) => streams.length === 1));
    for (const [at, { streams }] of servers.entries()) {
      const ask = { jsonrpc: "2.0", id: 0, method: "roots/list", params: { at } };
      streams[0]?.write(`data: ${JSON.stringify(ask)}\n\n`);
    }
    const asked = () => host.received.filter(({ method }) => method === "roots/list");
    await until(() => asked().length === 2);
    for (const { id, params } of asked()) host.send({ id, result: { at: params?.["at"] } });
    await until(() => servers.every(({ calls }) => calls.some((call) => "result" in call)));
    const results = servers.map(({ calls }) => calls.filter((call) => "result" in call));
    expect(results).toMatchObject([[{ id: 0, result: { at: 0 } }], [{ id: 0, result: { at: 1 } }]]);
  });

  it("answer what is pending when the host closes its input", async () => {
    const docs = await startLossyServer({ answer: (response) => response.writeHead(200, EVENTS).flushHeaders() });
    const host = startHost({ docs: docs.url, mail: (await startTools("mail", "a")).url });
    await host.begin();
    host.send({ id: 1, method: "tools/call", params: { name: "docs__slow" } });
    await until(() => docs.of("tools/call").length === 1);
    host.end();
    await host.done;
    expect((await host.answerTo(1)).error?.message).toContain("the proxy has ended");
  });
});
