import { describe, expect, it } from "vitest";
import type { RpcMessage, RpcResponse } from "../../src/mcp/json-rpc.js";
import { ServerRequests } from "../../src/mcp/server-session.js";
import { SessionRecovery } from "../../src/mcp/session-recovery.js";

const ping = (id: number): RpcMessage => ({ jsonrpc: "2.0", id, method: "ping" });
const answer = (id: string | number): RpcResponse => ({ jsonrpc: "2.0", id, result: {} });
const cancel = (requestId: unknown): RpcMessage => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId, reason: "no need" },
});

/** Two requests of a lost session, which the new session repeats. */
function repeated() {
  const requests = new ServerRequests();
  for (const id of [1, 2]) requests.toHost(ping(id));
  expect(requests.lose()).toEqual([1, 2]);
  expect([1, 2].map((id) => requests.toHost(ping(id)).id)).toEqual(["agentauth-1", "agentauth-2"]);
  return requests;
}

describe("the requests of a server that repeats ids", () => {
  it("get ids of their own, and their responses the ids of the server", () => {
    const requests = repeated();
    expect(requests.toServer(answer("agentauth-2"))).toEqual(answer(2));
    expect(requests.toServer(answer("agentauth-1"))).toEqual(answer(1));
    expect([1, 2].map((id) => requests.toServer(answer(id)))).toEqual([undefined, undefined]);
  });

  it("keep their ids again once the late response to the lost one has come", () => {
    const requests = repeated();
    expect(requests.toServer(answer(1))).toBeUndefined();
    expect(requests.toHost(ping(1)).id).toBe(1);
  });

  it("are lost once: what is answered is not open any more", () => {
    const requests = repeated();
    requests.toServer(answer("agentauth-1"));
    expect(requests.lose()).toEqual(["agentauth-2"]);
    expect(requests.lose()).toEqual([]);
  });

  it("are cancelled by the id that the host knows, each by its own", () => {
    const requests = repeated();
    requests.toHost(ping(3));
    expect(requests.toHost(cancel(2))).toEqual(cancel("agentauth-2"));
    for (const id of [3, 4, undefined]) expect(requests.toHost(cancel(id))).toEqual(cancel(id));
  });

  it("are named by no other notification", () => {
    const progress: RpcMessage = { jsonrpc: "2.0", method: "notifications/progress", params: { requestId: 2 } };
    expect(repeated().toHost(progress)).toEqual(progress);
  });
});

describe("what a new session repeats", () => {
  const recovery = () => new SessionRecovery({ url: "https://mcp.example/mcp", onWarning: () => undefined });
  const request = (method: string) => ({ jsonrpc: "2.0", id: 1, method }) as const;
  const response = (result: unknown) => ({ jsonrpc: "2.0", id: 1, result }) as RpcResponse;

  it.each([
    ["another method", "tools/list", { protocolVersion: "2025-11-25" }],
    ["an initialize without a revision", "initialize", {}],
    ["an initialize with a revision that is no text", "initialize", { protocolVersion: 1 }],
    ["an initialize without a result", "initialize", null],
  ])("is no agreement of %s", (_what, method, result) => {
    const one = recovery();
    expect(one.observe(request(method), response(result))).toBeUndefined();
    expect(one.isPossible).toBe(false);
  });

  it("is the agreement of an initialize", () => {
    const one = recovery();
    expect(one.observe(request("initialize"), response({ protocolVersion: "2025-11-25" }))).toBe("2025-11-25");
    expect(one.isPossible).toBe(true);
  });
});
