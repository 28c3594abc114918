import type { AgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { writeExactJson } from "./exact-json.js";
import {
  CANCELLED,
  cancelledMessage,
  INITIALIZE,
  isRpcRequest,
  isRpcResponse,
  RPC_CODES,
  type RpcError,
  type RpcId,
  type RpcMessage,
  type RpcRequest,
  type RpcResponse,
  readParam,
} from "./json-rpc.js";
import type { McpProxy } from "./proxy.js";
import type { StdioWriter } from "./stdio.js";

/** Between the name of a server and that of its tool. */
export const NAME_END = "__";
/** A server whose list of tools has more pages than this does not end it. */
const MAX_PAGES = 64;

/** What a {@link ServerGroup} is made of. */
export interface ServerGroupOptions<Server extends { name: string }> {
  host: Pick<StdioWriter, "send">;
  servers: readonly Server[];
  /** Creates the proxy of one server; what the server sends goes to `host`. */
  connect(server: Server, host: Pick<StdioWriter, "send">): McpProxy;
  /** Called with each warning. */
  onWarning(text: string): void;
  /** Called when `initialize` fails at every server. */
  onFatalError(): void;
}

/** A request of the host. */
interface HostCall {
  readonly bytes: number;
  /** The servers that work on it, by the id of the request there. */
  readonly servers: Map<RpcId, string>;
  done: Promise<void>;
}

type RpcOutcome = { result: unknown } | { error: RpcError };

/**
 * Several servers that a host sees as one, which offers their tools under the names `<server>__<tool>`. A server that
 * refuses `initialize` is left out. Prompts and resources are not offered.
 */
export class ServerGroup<Server extends { name: string }> {
  readonly #options: Pick<ServerGroupOptions<never>, "host" | "onWarning" | "onFatalError">;
  readonly #members: ReadonlyMap<string, McpProxy>;
  /** The servers that refused `initialize`. */
  readonly #failed = new Set<string>();
  /** What the servers have not answered yet, by the id that they know. */
  readonly #asks = new Map<RpcId, (response: RpcResponse) => void>();
  /** What the host waits for, by its id. */
  readonly #served = new Map<RpcId, HostCall>();
  /** The requests of the servers, by the id at the host. */
  readonly #requests = new Map<RpcId, { name: string; id: RpcId }>();
  #lastId = 0;

  constructor({ servers, connect, ...options }: ServerGroupOptions<Server>) {
    this.#options = options;
    const hostOf = ({ name }: Server) => ({ send: (message: RpcMessage) => this.#fromServer(name, message) });
    this.#members = new Map(servers.map((server) => [server.name, connect(server, hostOf(server))]));
  }

  /** Why the first server failed, if all did. */
  get error(): AgentAuthError | undefined {
    const errors = this.#proxies.map(({ error }) => error);
    return errors.includes(undefined) ? undefined : errors[0];
  }

  get #proxies(): McpProxy[] {
    return [...this.#members.values()];
  }

  /** Takes a message of the host. */
  fromHost(message: RpcMessage, bytes: number): void {
    if (isRpcResponse(message)) {
      const to = this.#requests.get(message.id as RpcId);
      this.#requests.delete(message.id as RpcId);
      if (to) this.#members.get(to.name)?.fromHost({ ...message, id: to.id }, 0);
    } else if (message.method === CANCELLED) this.#cancel(readParam(message, "requestId") as RpcId);
    else if (isRpcRequest(message)) this.#serve(message, bytes);
    else for (const name of this.#usable()) this.#members.get(name)?.fromHost(message, 0);
  }

  /** Resolves when every request of the host has its response. */
  async untilIdle(): Promise<void> {
    await Promise.all([...this.#served.values()].map(({ done }) => done));
  }

  /** As {@link McpProxy.untilBelow}, at all servers. */
  async untilBelow(maxBytes: number, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.untilBelow(maxBytes / this.#members.size, signal)));
  }

  /** Answers each pending request with an error. */
  abortPending(): void {
    for (const proxy of this.#proxies) proxy.abortPending();
  }

  /** Keeps the sessions alive. */
  async ping(ms: number): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.ping(ms)));
  }

  /** Ends the sessions at the servers. */
  async terminate(): Promise<void> {
    await Promise.allSettled(this.#proxies.map((proxy) => proxy.terminate()));
  }

  /** Closes all connections. */
  close(): void {
    for (const proxy of this.#proxies) proxy.close();
  }

  #serve(request: RpcRequest, bytes: number): void {
    const call: HostCall = { bytes, servers: new Map(), done: Promise.resolve() };
    const answer = async () => {
      const outcome = await this.#outcomeOf(request, call);
      // A request that the host has cancelled gets no response.
      if (this.#served.get(request.id) !== call) return;
      this.#served.delete(request.id);
      this.#options.host.send({ jsonrpc: "2.0", id: request.id, ...outcome });
    };
    this.#served.set(request.id, call);
    call.done = answer();
  }

  async #outcomeOf(request: RpcRequest, call: HostCall): Promise<RpcOutcome> {
    switch (request.method) {
      case INITIALIZE:
        return this.#initialize(request, call);
      case "ping":
        return { result: {} };
      case "tools/list":
        return this.#listTools(request, call);
      case "tools/call":
        return this.#callTool(request, call);
    }
    const message = `${quote(request.method, 80)}: several servers behind one entry offer their tools only`;
    return { error: { code: RPC_CODES.method, message } };
  }

  async #initialize(request: RpcRequest, call: HostCall): Promise<RpcOutcome> {
    this.#failed.clear();
    const answers = await Promise.all(
      this.#usable().map(async (name) => ({ name, response: await this.#ask(name, request, call) })),
    );
    for (const { name, response } of answers) if (!isJsonObject(response.result)) this.#failed.add(name);
    const results = answers.flatMap(({ name, response: { result } }) =>
      isJsonObject(result) ? [{ name, result }] : [],
    );
    if (results.length === 0) {
      this.#options.onFatalError();
      return { error: answers[0]?.response.error ?? noResult };
    }
    // What the newer ones add, the older ones ignore.
    const [protocolVersion] = results.map(({ result }) => String(result["protocolVersion"])).sort();
    const instructions = results.flatMap(({ name, result }) =>
      typeof result["instructions"] === "string" ? [`${name}:\n${result["instructions"]}`] : [],
    );
    const capabilities = { tools: { listChanged: true } };
    const serverInfo = { name: "agentauth", title: results.map(({ name }) => name).join(", "), version: "1" };
    return {
      result: {
        protocolVersion,
        capabilities,
        serverInfo,
        ...(instructions.length > 0 && { instructions: instructions.join("\n\n") }),
      },
    };
  }

  /** The tools of all servers, from every page. A server that fails is left out. */
  async #listTools(request: RpcRequest, call: HostCall): Promise<RpcOutcome> {
    const lists = await Promise.all(this.#usable().map((name) => this.#toolsOf(name, request, call)));
    const errors = lists.filter((list) => "error" in list);
    const [error] = errors;
    if (error && errors.length === lists.length) return error;
    return { result: { tools: lists.flatMap((list) => ("tools" in list ? list.tools : [])) } };
  }

  async #toolsOf(
    name: string,
    request: RpcRequest,
    call: HostCall,
  ): Promise<{ tools: object[] } | { error: RpcError }> {
    const tools: object[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = { ...(request.params as object | undefined), cursor };
      const { result, error } = await this.#ask(name, { ...request, params }, call);
      if (error || !isJsonObject(result)) {
        this.#options.onWarning(`the tools of ${quote(name)} are missing: ${error?.message ?? noResult.message}`);
        return { error: error ?? noResult };
      }
      for (const tool of Array.isArray(result["tools"]) ? result["tools"] : []) {
        if (isJsonObject(tool)) tools.push({ ...tool, name: `${name}${NAME_END}${tool["name"]}` });
      }
      if (typeof result["nextCursor"] !== "string" || result["nextCursor"] === cursor) break;
      cursor = result["nextCursor"];
    }
    return { tools };
  }

  async #callTool(request: RpcRequest, call: HostCall): Promise<RpcOutcome> {
    const tool = readParam(request, "name");
    const text = typeof tool === "string" ? tool : "";
    const name = this.#usable().find((one) => text.startsWith(`${one}${NAME_END}`));
    if (name === undefined) {
      const message = `no server has the tool ${quote(text, 80)}: a name begins with that of its server and "${NAME_END}"`;
      return { error: { code: RPC_CODES.params, message } };
    }
    const params = { ...(request.params as object), name: text.slice(name.length + NAME_END.length) };
    const { result, error } = await this.#ask(name, { ...request, params }, call);
    return error ? { error } : { result };
  }

  #ask(name: string, request: RpcRequest, call: HostCall): Promise<RpcResponse> {
    const id = `agentauth-${++this.#lastId}`;
    call.servers.set(id, name);
    return new Promise((resolve) => {
      this.#asks.set(id, (response) => {
        call.servers.delete(id);
        resolve(response);
      });
      this.#members.get(name)?.fromHost({ ...request, id }, call.bytes);
    });
  }

  #cancel(requestId: RpcId): void {
    const { servers } = this.#served.get(requestId) ?? {};
    this.#served.delete(requestId);
    for (const [id, name] of servers ?? []) {
      this.#asks.delete(id);
      this.#members.get(name)?.fromHost(cancelledMessage(id, "cancelled"), 0);
    }
  }

  #fromServer(name: string, message: RpcMessage): void {
    if (isRpcResponse(message)) {
      const take = this.#asks.get(message.id as RpcId);
      this.#asks.delete(message.id as RpcId);
      take?.(message);
      return;
    }
    this.#options.host.send(
      isRpcRequest(message) || message.method === CANCELLED ? this.#renamed(name, message) : message,
    );
  }

  /** Ids of different servers may be the same: at the host, each begins with the name of its server. */
  #renamed(name: string, message: RpcMessage): RpcMessage {
    const idOf = (id: unknown) => `${name}/${writeExactJson(id)}`;
    if (isRpcRequest(message)) {
      const id = idOf(message.id);
      this.#requests.set(id, { name, id: message.id });
      return { ...message, id };
    }
    const requestId = idOf(readParam(message, "requestId"));
    this.#requests.delete(requestId);
    return { ...message, params: { ...((message as RpcRequest).params as object), requestId } } as RpcMessage;
  }

  #usable(): string[] {
    return [...this.#members.keys()].filter((name) => !this.#failed.has(name));
  }
}

const noResult: RpcError = { code: RPC_CODES.internal, message: "the server sent no result" };
