import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { toRpcError } from "./errors.js";
import { NotificationStream, type NotificationStreamOptions } from "./http-transport.js";
import {
  failure,
  isRequest,
  isResponse,
  param,
  type RpcMessage,
  type RpcRequest,
  type RpcResponse,
} from "./json-rpc.js";
import { ParamHeaders } from "./param-headers.js";
import { currentRequest, Handshake, type PendingRequest, PendingRequests } from "./pending-requests.js";
import type { StdioWriter } from "./stdio.js";

/** How long what follows a notification, or the end of a request that was cancelled, waits for the server to take it. */
const MAX_TURN_MS = 5000;
const CANCELLED = "notifications/cancelled";
const INITIALIZED = "notifications/initialized";
/** It has no answer until it ends. */
const SUBSCRIPTION = "subscriptions/listen";

/** The two sides of an `McpProxy`, and its callbacks. */
export interface McpProxyOptions extends NotificationStreamOptions {
  url: string;
  host: StdioWriter;
  /** Hears that the host's `initialize` was refused for a reason that asking again does not mend. */
  onRefused(): void;
}

/** Passes messages on in both directions; each request of the host is answered, by the server or with what went wrong. */
export class McpProxy {
  readonly #options: McpProxyOptions;
  readonly #flights = new PendingRequests();
  readonly #unasked: NotificationStream;
  readonly #headers = new ParamHeaders();
  readonly #handshake = new Handshake((message) => this.#forward(message));
  readonly #sizes = new Map<RpcMessage, number>();
  readonly #watch = new Condition();
  #underway = 0;
  #hasAnswered = false;
  #refusal: AgentAuthError | undefined;
  /** The refusal of the host's `initialize`, which ends the relay. */
  #final: AgentAuthError | undefined;

  constructor(options: McpProxyOptions) {
    this.#options = options;
    options.http.onmessage = (message) => this.#fromServer(message as RpcMessage);
    this.#unasked = new NotificationStream(options);
    options.http.onerror = (error) => this.#unasked.onError(error);
  }

  /** Why nothing could be done for the host, or nothing more; undefined where all went its way. */
  get refusal(): AgentAuthError | undefined {
    return this.#final ?? (this.#hasAnswered ? undefined : this.#refusal);
  }

  /** Takes a message of the host that is `bytes` long. */
  fromHost(message: RpcMessage, bytes: number): void {
    this.#options.onStep(`host: ${nameOf(message)}`);
    if (message.method === CANCELLED) this.#cancel(message);
    else {
      this.#sizes.set(message, bytes);
      this.#underway += bytes;
      this.#handshake.pass(message);
    }
  }

  /** Resolves when no more than `bytes` of what the host said are still on their way to the server, or the signal fires. */
  room(bytes: number, signal: AbortSignal): Promise<void> {
    return this.#watch.until(() => this.#underway <= bytes, signal);
  }

  /** Resolves when every request is answered that can be, or the signal fires. */
  idle(signal: AbortSignal): Promise<void> {
    const isOwed = ({ request }: PendingRequest) => request.method !== SUBSCRIPTION;
    return this.#watch.until(() => this.#sizes.size === 0 && !this.#flights.all().some(isOwed), signal);
  }

  /** Answers what has no answer yet. */
  giveUp(): void {
    const waiting = this.#handshake.clear().filter(isRequest);
    for (const { request } of this.#flights.all()) waiting.push(request);
    const ended = new AgentAuthError("aborted", "the proxy has ended", { class: "aborted" });
    for (const { id } of waiting) {
      this.#flights.end(id)?.abort.abort(ended);
      this.#options.host.send(failure(id, toRpcError(ended, this.#context())));
    }
  }

  #forward(message: RpcMessage): void {
    if (isRequest(message)) {
      const turn = message.method === "initialize" ? this.#handshake.begin() : () => {};
      const flight = this.#flights.begin(message, () => {
        turn();
        this.#watch.changed();
      });
      void this.#post(message, flight);
    } else if (message.method === INITIALIZED) {
      const turn = this.#handshake.begin();
      void settledWithin(this.#post(message), MAX_TURN_MS).then(turn);
    } else void this.#post(message);
  }

  async #post(message: RpcMessage, flight?: PendingRequest): Promise<void> {
    const { http, onTrouble, url } = this.#options;
    try {
      await currentRequest.run(flight, () => http.send(message as JSONRPCMessage, flight && this.#sendOptions(flight)));
      if (flight && !flight.isStreaming) {
        this.#fail(flight, mcpFailed(`the MCP server ${quote(url)} took the request and gave no answer to it`));
      }
    } catch (error) {
      if (flight) this.#fail(flight, error);
      else onTrouble(`${nameOf(message)}: ${toRpcError(error, this.#context()).message}`);
    } finally {
      this.#arrived(message);
    }
  }

  #sendOptions(flight: PendingRequest) {
    const { url } = this.#options;
    return {
      requestSignal: flight.abort.signal,
      headers: flight.isSessionless ? this.#headers.of(flight.request) : {},
      onRequestStreamEnd: () => {
        const why = flight.trouble instanceof Error ? `: ${escapeText(flight.trouble.message).slice(0, 300)}` : "";
        const message = `the connection to the MCP server ${quote(url)} ended before the answer was there${why}`;
        this.#fail(flight, new AgentAuthError("connection_reset", message, { class: "unavailable" }));
      },
    };
  }

  #fail(flight: PendingRequest, error: unknown): void {
    if (!this.#flights.isOpen(flight)) return;
    const { host, onTrouble, onRefused } = this.#options;
    const { id, method } = flight.request;
    const rpcError = toRpcError(error, this.#context(flight));
    host.send(failure(id, rpcError));
    if (isAgentAuthError(error)) this.#refusal ??= error;
    if (method === "initialize" && isAgentAuthError(error) && error.class !== "unavailable") {
      this.#final = error;
      for (const held of this.#handshake.clear().filter(isRequest)) host.send(failure(held.id, rpcError));
      onRefused();
    } else onTrouble(`${quote(method, 80)}: ${rpcError.message}`);
    this.#flights.end(id);
    flight.abort.abort();
  }

  /** Over HTTP a request without a session is cancelled by the end of its exchange, and any other by a message. */
  #cancel(message: RpcMessage): void {
    const id = param(message, "requestId");
    const held = this.#handshake.drop(id);
    if (held) this.#arrived(held);
    const flight = this.#flights.end(id);
    if (held || flight?.isSessionless) flight?.abort.abort();
    else void settledWithin(this.#post(message), MAX_TURN_MS).then(() => flight?.abort.abort());
  }

  #fromServer(message: RpcMessage): void {
    const { host, onStep } = this.#options;
    if (!isResponse(message)) {
      onStep(`server: ${nameOf(message)}`);
      host.send(message);
      return;
    }
    const flight = this.#flightOf(message);
    onStep(`server: ${flight ? `answer to ${nameOf(flight.request)}` : "an answer without a pending request"}`);
    if (!flight) return;
    this.#hasAnswered = true;
    this.#learn(flight.request, message);
    host.send({ ...message, id: flight.request.id });
    this.#flights.end(flight.request.id);
    // A server that leaves its stream open has nothing more to say on it.
    const { abort, isStreaming } = flight;
    if (isStreaming) setTimeout(() => abort.abort(), MAX_TURN_MS).unref();
    this.#unasked.onAnswer();
  }

  /** An answer without an id is to the request that it came for. */
  #flightOf({ id }: RpcResponse): PendingRequest | undefined {
    const current = currentRequest.getStore();
    if (id === undefined || id === null) return current && this.#flights.isOpen(current) ? current : undefined;
    return this.#flights.get(id);
  }

  #learn(request: RpcRequest, answer: RpcResponse): void {
    const { result } = answer;
    if (request.method === "initialize" && isJsonObject(result) && typeof result["protocolVersion"] === "string") {
      this.#options.http.setProtocolVersion(result["protocolVersion"]);
    }
    this.#headers.learn(request, answer);
  }

  #context(flight?: PendingRequest) {
    const { url, mask, http } = this.#options;
    const hasSession = http.sessionId !== undefined && flight !== undefined && flight.request.method !== "initialize";
    return { url, mask, hasSession };
  }

  #arrived(message: RpcMessage): void {
    this.#underway -= this.#sizes.get(message) ?? 0;
    this.#sizes.delete(message);
    this.#watch.changed();
  }
}

/** What a message is about, for people: never what is in it. */
function nameOf(message: RpcMessage): string {
  return isResponse(message) ? "an answer" : quote(message.method, 80);
}

function mcpFailed(message: string): AgentAuthError {
  return new AgentAuthError("mcp_failed", message, { class: "remote" });
}

/** Resolves when the work has ended, well or not, or after a time. */
export function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(done, done);
  });
}

/** Lets work wait for what other work brings about. */
class Condition {
  readonly #checks = new Set<() => void>();

  /** Has every condition looked at again. */
  changed(): void {
    for (const check of [...this.#checks]) check();
  }

  /** Resolves when the condition holds, or the signal fires. */
  until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!holds() && !signal.aborted) return;
        this.#checks.delete(check);
        signal.removeEventListener("abort", check);
        resolve();
      };
      this.#checks.add(check);
      signal.addEventListener("abort", check);
      check();
    });
  }
}
