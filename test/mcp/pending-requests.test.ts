import { describe, expect, it, vi } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { RpcMessage, RpcRequest } from "../../src/mcp/json-rpc.js";
import { Handshake, PendingRequests, ProxyOutcome, UnsentMessages } from "../../src/mcp/pending-requests.js";

const request = (id: number | string, params?: object): RpcRequest => ({ jsonrpc: "2.0", id, method: "ping", params });
const note = (method: string): RpcMessage => ({ jsonrpc: "2.0", method });

describe("pending requests", () => {
  it.each<[string, object | undefined, string | undefined]>([
    ["its _meta names", { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } }, "2026-07-28"],
    ["its _meta names as no text", { _meta: { "io.modelcontextprotocol/protocolVersion": 5 } }, undefined],
    ["no object names", { _meta: "2026-07-28" }, undefined],
    ["no params name", undefined, undefined],
  ])("have the revision that %s", (_what, params, revision) => {
    const pending = new PendingRequests().add(request(1, params), () => undefined);
    expect(pending).toMatchObject({ request: request(1, params), revision, state: "sent" });
    expect(pending.abort.signal.aborted).toBe(false);
  });

  it("end once each, also by another with the same id", () => {
    const requests = new PendingRequests();
    const onEnd = vi.fn();
    const first = requests.add(request(1), onEnd);
    const second = requests.add(request(1), () => onEnd("second"));
    expect(onEnd.mock.calls).toEqual([[]]);
    expect([requests.has(first), requests.has(second), requests.get(1), requests.all()]).toEqual([
      false,
      true,
      second,
      [second],
    ]);
    expect([requests.remove(1), requests.remove(1), requests.get(1), requests.all()]).toEqual([
      second,
      undefined,
      undefined,
      [],
    ]);
    expect(onEnd.mock.calls).toEqual([[], ["second"]]);
  });
});

describe("a handshake", () => {
  const start = () => {
    const forwarded: RpcMessage[] = [];
    const handshake = new Handshake((message) => void forwarded.push(message));
    return { handshake, forwarded };
  };

  it("delays what comes while a step is open, but responses", () => {
    const { handshake, forwarded } = start();
    handshake.pass(request(1));
    const [endFirst, endSecond] = [handshake.begin(), handshake.begin()];
    for (const message of [request(2), note("a"), { jsonrpc: "2.0", id: 3, result: {} } as RpcMessage])
      handshake.pass(message);
    expect(forwarded).toEqual([request(1), { jsonrpc: "2.0", id: 3, result: {} }]);
    endFirst();
    endFirst();
    expect(forwarded).toHaveLength(2);
    endSecond();
    expect(forwarded.slice(2)).toEqual([request(2), note("a")]);
    handshake.pass(request(4));
    expect(forwarded.at(-1)).toEqual(request(4));
  });

  it("stops again at a message that begins a step", () => {
    const forwarded: RpcMessage[] = [];
    const handshake: Handshake = new Handshake((message) => {
      forwarded.push(message);
      if (message.method === "a") handshake.begin();
    });
    const end = handshake.begin();
    for (const method of ["a", "b"]) handshake.pass(note(method));
    end();
    expect(forwarded).toEqual([note("a")]);
  });

  it("drops a delayed request, and gives all that is delayed", () => {
    const { handshake, forwarded } = start();
    const end = handshake.begin();
    for (const message of [note("a"), request(1), request(2)]) handshake.pass(message);
    expect([handshake.drop(1), handshake.drop(1), handshake.drop(undefined)]).toEqual([
      request(1),
      undefined,
      undefined,
    ]);
    expect(handshake.clear()).toEqual([note("a"), request(2)]);
    end();
    expect([forwarded, handshake.clear()]).toEqual([[], []]);
  });
});

it("unsent messages are as long as all of them together", () => {
  const unsent = new UnsentMessages();
  const [one, two] = [request(1), request(2)];
  expect([unsent.isEmpty, unsent.bytes]).toEqual([true, 0]);
  unsent.add(one, 3);
  unsent.add(two, 4);
  expect([unsent.isEmpty, unsent.bytes]).toEqual([false, 7]);
  unsent.remove(one);
  unsent.remove(one);
  unsent.remove(request(2));
  expect([unsent.isEmpty, unsent.bytes]).toEqual([false, 4]);
  unsent.remove(two);
  expect([unsent.isEmpty, unsent.bytes]).toEqual([true, 0]);
});

it.each<[string, ("response" | "failure" | "fatal")[], number | undefined]>([
  ["nothing", [], undefined],
  ["responses", ["response", "response"], undefined],
  ["failures", ["failure", "failure"], 0],
  ["a failure after a response", ["response", "failure"], undefined],
  ["a response after a failure", ["failure", "response"], undefined],
  ["a failure after that", ["failure", "response", "failure"], undefined],
  ["an initialize that fails for good", ["response", "fatal"], 1],
  ["what comes after it", ["fatal", "response", "failure"], 0],
  ["another one", ["failure", "fatal", "fatal"], 2],
])("a proxy reports after %s: %j", (_what, steps, nth) => {
  const outcome = new ProxyOutcome();
  const errors = steps.map((step) => new AgentAuthError("timeout", step, { class: "unavailable" }));
  for (const [at, step] of steps.entries()) {
    const error = errors[at] as AgentAuthError;
    if (step === "response") outcome.onResponse();
    else if (step === "failure") outcome.onFailure(error);
    else outcome.onFatalFailure(error);
  }
  expect(outcome.error).toBe(nth === undefined ? undefined : errors[nth]);
});
