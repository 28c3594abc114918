import { AgentAuthError, orUndefined } from "../errors.js";
import { discardBody, isEventStream } from "../http/buffered-response.js";
import { followSignal, systemClock } from "../http/deadline.js";
import { isJsonObject } from "../http/strict-json.js";
import {
  ActionFailure,
  actionIn,
  CAPABILITIES,
  ELICITATION,
  ELICITATION_COMPLETE,
  inputRequired,
  isUrlMode,
  type PresentUser,
  readAddress,
  type UserAction,
  userActionError,
} from "./elicitation.js";
import { RequestTimeout, RpcFailure } from "./errors.js";
import {
  bodyParts,
  HttpConnection,
  type HttpConnectionOptions,
  httpFailure,
  isJsonResponse,
  isTooLong,
  readEvents,
  readResponseBody,
  textParts,
  tooLong,
} from "./http-channel.js";
import {
  CLIENT_CAPABILITIES,
  cancelledMessage,
  INITIALIZE,
  isRpcRequest,
  isRpcResponse,
  parseServerJson,
  RPC_CODES,
  type RpcMessage,
  type RpcNotification,
  type RpcRequest,
  readParam,
  rpcErrorResponse,
} from "./json-rpc.js";
import { sessionlessHeaders } from "./param-headers.js";

/** Limit of what is held in memory as a whole: a response or an event. */
const MAX_RESPONSE_LENGTH = 16 * 1024 * 1024;
/** Attempts to resume a broken stream, and the wait before each unless the server names another. */
const MAX_RESUMPTIONS = 2;
const RESUME_AFTER_MS = 1000;
const MAX_RESUME_AFTER_MS = 10_000;
/** A server that completes more than this is not listened to any more. */
const MAX_COMPLETED = 100;
/** The only request that the server's own stream is opened for, and the longest wait for that. */
const CALL = "tools/call";
const LISTEN_MS = 300;
/** Time for what a user does at an address while a request waits. */
const USER_MS = 300_000;

/** The members of `_meta` with which each request of a revision without sessions describes its client. */
const META = "io.modelcontextprotocol/";

/** What an {@link HttpSession} sends requests with. */
export interface HttpSessionOptions extends Pick<HttpConnectionOptions, "fetch" | "token" | "extension"> {
  /** The name of the client. */
  name: string;
  /** The version of the client. */
  version: string;
  /** The user, where one is present. Without one, a request that needs a user fails with what is needed. */
  user?: PresentUser | undefined;
}

interface WaitingCall {
  /** Restarts its time limit. */
  restart(ms?: number): void;
  /** Suspends it. */
  hold(): void;
  /** Ends the call. */
  fail(error: Error): void;
  /** Whether the server has requested something of its user. */
  hasElicited: boolean;
}

export interface RequestLimits {
  signal: AbortSignal;
  /** Milliseconds until the response, or after the last notification of progress. */
  timeout: number;
  headers?: Record<string, string>;
}

/** Sends requests of JSON-RPC to an MCP server over streamable HTTP and reads their responses. */
export class HttpSession extends HttpConnection {
  readonly #url: string;
  readonly #options: HttpSessionOptions;
  readonly #closing = new AbortController();
  #nextId = 0;
  /** Whether the revision has no sessions: each request describes its client. */
  isSessionless = false;
  /** What the server can do. */
  capabilities: Record<string, unknown> = {};
  /** Whether the server has a stream of its own, once that was opened. */
  #listening: Promise<boolean> | undefined;
  /** Whether that stream has ended. */
  #isSilent = false;
  /** The call that waits for its response. */
  #waiting: WaitingCall | undefined;
  /** The ids of the addresses where the user is done, by the server. */
  readonly #completed = new Set<unknown>();
  /** Called when one is added, and when the stream has ended. */
  #onNews: () => void = () => {};

  constructor(url: string, options: HttpSessionOptions) {
    super({ ...options, url });
    this.#url = url;
    this.#options = options;
  }

  /**
   * Sends a request and returns its result. Where the server needs the user to open an address first, the request is sent
   * once more when the user is done there.
   *
   * @param statelessRevision the revision that the request itself names
   * @throws `HttpFailure`, `RpcFailure`, `RequestTimeout`, `AgentAuthError` `user_action_required`, and the errors of `fetch`
   */
  async request(
    method: string,
    params: Record<string, unknown>,
    limits: RequestLimits,
    statelessRevision = this.isSessionless ? this.revision : undefined,
  ): Promise<Record<string, unknown>> {
    try {
      return await this.#attempt(method, params, limits, statelessRevision);
    } catch (error) {
      const action = actionIn(error, this.#url);
      if (action === undefined) throw error;
      await this.#act(action);
      return await this.#attempt(method, { ...params, ...action.again }, limits, statelessRevision).catch(
        (second: unknown) => {
          const [address] = actionIn(second, this.#url)?.addresses ?? [];
          throw address === undefined ? second : userActionError(this.#url, address);
        },
      );
    }
  }

  /** Lets the user open what the server needs. @throws `AgentAuthError` `user_action_required` */
  async #act({ addresses }: UserAction): Promise<void> {
    const { user } = this.#options;
    // The server says only once that the user is done there, which may be at once.
    const done = user === undefined ? Promise.resolve(false) : this.#whenDone(addresses);
    for (const address of addresses) if (!(await user?.open(address))) throw userActionError(this.#url, address);
    const [first] = addresses;
    if (first !== undefined && !(await user?.wait(done))) throw userActionError(this.#url, first);
  }

  /** Whether the server says that the user is done at each address; false where it cannot, without a stream of its own. */
  async #whenDone(addresses: UserAction["addresses"]): Promise<boolean> {
    const isDone = () => addresses.every(({ id }) => this.#completed.has(id));
    if (!(await this.#listen())) return false;
    return new Promise((resolve) => {
      this.#onNews = () => {
        if (isDone() || this.#isSilent) resolve(isDone());
      };
      this.#onNews();
    });
  }

  /**
   * Reads the messages of the server that belong to no response, until the session is closed: some servers send there what
   * they request while a call waits.
   *
   * @returns whether the server has a stream for them
   */
  #listen(): Promise<boolean> {
    this.#listening ??= this.#openStream().catch(() => false);
    return this.#listening;
  }

  async #openStream(): Promise<boolean> {
    if (this.sessionId === undefined) return false;
    const response = await this.get(undefined, this.#closing.signal);
    const { ok, body } = response;
    if (ok && body !== null && isEventStream(response)) void this.#readStream(body);
    else await discardBody(response);
    return ok;
  }

  async #readStream(body: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const { data } of readEvents(textParts(bodyParts(body)), MAX_RESPONSE_LENGTH, tooLongEvent)) {
        for (const one of data === "" ? [] : [parseServerJson(data)].flat()) {
          const message = one as unknown as RpcMessage;
          if (isJsonObject(one) && !isRpcResponse(message)) this.#note(message, this.#waiting);
        }
      }
    } catch {
      // What it would have said can be missed: the call has its own stream, and the user can say that they are done.
    }
    this.#isSilent = true;
    this.#onNews();
  }

  async #attempt(
    method: string,
    params: Record<string, unknown>,
    { signal, timeout, headers = {} }: RequestLimits,
    statelessRevision: string | undefined,
  ): Promise<Record<string, unknown>> {
    const message: RpcRequest = { jsonrpc: "2.0", id: this.#nextId++, method, params };
    if (statelessRevision !== undefined) message.params = this.#describeClient(params, statelessRevision);
    const call = followSignal(signal);
    let timer: NodeJS.Timeout | undefined;
    const waiting: WaitingCall = {
      restart(ms = timeout) {
        clearTimeout(timer);
        timer = setTimeout(() => call.abort(new RequestTimeout(`no response to ${method} in ${ms} ms`)), ms);
      },
      hold: () => clearTimeout(timer),
      fail: (error) => call.abort(error),
      hasElicited: false,
    };
    waiting.restart();
    this.#waiting = waiting;
    try {
      if (method === CALL) await Promise.race([this.#listen(), systemClock.sleep(LISTEN_MS, call.signal)]);
      const own = statelessRevision === undefined ? {} : sessionlessHeaders(message, statelessRevision);
      return await this.#exchange(message, { ...own, ...headers }, call.signal, waiting);
    } catch (error) {
      if (!call.signal.aborted) throw error;
      if (method !== INITIALIZE && statelessRevision === undefined) this.#cancel(message);
      throw call.signal.reason;
    } finally {
      clearTimeout(timer);
      // What is left of the response is not read.
      call.abort(undefined);
      call.release();
    }
  }

  /** Sends a message without a response; resolves when the server has accepted it. */
  async notify(message: RpcMessage, signal: AbortSignal = this.#closing.signal): Promise<void> {
    await discardBody(await this.post(message, {}, signal));
  }

  /** Ends the messages without a waiting caller. */
  close(): void {
    this.#closing.abort();
  }

  #describeClient(params: Record<string, unknown>, revision: string): Record<string, unknown> {
    const { name, version } = this.#options;
    const meta = {
      [`${META}protocolVersion`]: revision,
      [`${META}clientInfo`]: { name, version },
      [CLIENT_CAPABILITIES]: CAPABILITIES,
    };
    return { ...params, _meta: { ...meta, ...(params["_meta"] as object | undefined) } };
  }

  async #exchange(
    message: RpcRequest,
    headers: Record<string, string>,
    signal: AbortSignal,
    call: WaitingCall,
  ): Promise<Record<string, unknown>> {
    const response = await this.post(message, headers, signal);
    if (isEventStream(response) && response.body !== null)
      return this.#fromStream(message, response.body, signal, call);
    const text = await readResponseBody(response, MAX_RESPONSE_LENGTH);
    if (!isJsonResponse(response))
      throw new AgentAuthError("mcp_failed", `the MCP server answered ${message.method} with no JSON`, {
        class: "remote",
      });
    const result = this.#receive(text, message, call);
    if (result === undefined) throw noResponse(message);
    return result;
  }

  /** Reads a stream up to the response, and resumes it where it breaks. */
  async #fromStream(
    message: RpcRequest,
    first: ReadableStream<Uint8Array>,
    signal: AbortSignal,
    call: WaitingCall,
  ): Promise<Record<string, unknown>> {
    let lastEventId: string | undefined;
    let wait = RESUME_AFTER_MS;
    let body = first;
    for (let resumptions = 0; ; resumptions++) {
      let broken: unknown = noResponse(message);
      try {
        for await (const event of readEvents(textParts(bodyParts(body)), MAX_RESPONSE_LENGTH, tooLongEvent)) {
          lastEventId = event.id ?? lastEventId;
          wait = Math.min(event.retry ?? wait, MAX_RESUME_AFTER_MS);
          if (event.data === "" || (event.type ?? "message") !== "message") continue;
          const result = this.#receive(event.data, message, call);
          if (result !== undefined) return result;
        }
      } catch (error) {
        if (signal.aborted || error instanceof RpcFailure || isTooLong(error) || error instanceof SyntaxError)
          throw error;
        broken = error;
      }
      if (lastEventId === undefined || resumptions === MAX_RESUMPTIONS) throw broken;
      await systemClock.sleep(wait, signal);
      const resumed = await this.get(lastEventId, signal);
      if (!resumed.ok || resumed.body === null) throw await httpFailure(resumed);
      body = resumed.body;
    }
  }

  /**
   * The result, with its numbers as they are written, if one of the messages is the response to the request; answers or
   * notes any other message.
   */
  #receive(text: string, request: RpcRequest, call: WaitingCall): Record<string, unknown> | undefined {
    const written = [parseServerJson(text, true)].flat();
    for (const [at, one] of [parseServerJson(text)].flat().entries())
      if (this.#isResult(one, request, call)) return readResult(written[at], request);
    return undefined;
  }

  #isResult(received: unknown, { id }: RpcRequest, call: WaitingCall): boolean {
    if (!isJsonObject(received)) throw new SyntaxError("a message of the MCP server is not a JSON object");
    const message = received as unknown as RpcMessage;
    if (!isRpcResponse(message)) {
      this.#note(message, call);
      return false;
    }
    if (message.id !== undefined && message.id !== null && message.id !== id) return false;
    const { error } = message;
    if (isJsonObject(error)) throw new RpcFailure({ ...error, message: String(error.message) });
    return true;
  }

  /** Answers a request of the server, and notes what it says of a call. */
  #note(message: RpcRequest | RpcNotification, call: WaitingCall | undefined): void {
    if (message.method === "notifications/progress") call?.restart();
    else if (message.method === ELICITATION_COMPLETE) {
      if (this.#completed.size < MAX_COMPLETED) this.#completed.add(readParam(message, "elicitationId"));
      this.#onNews();
    } else if (!isRpcRequest(message) || this.isSessionless) return;
    else if (message.method === ELICITATION && isUrlMode(message.params)) this.#elicit(message, call);
    else this.#answer(message);
  }

  /** Answers a request of the server: it has no other that this client could serve. */
  #answer({ id, method }: RpcRequest): void {
    const refusal =
      method === ELICITATION
        ? { code: RPC_CODES.params, message: "this client opens addresses alone" }
        : { code: RPC_CODES.method, message: "Method not found" };
    this.#reply(method === "ping" ? { jsonrpc: "2.0", id, result: {} } : rpcErrorResponse(id, refusal));
  }

  /**
   * Answers a server that needs its user to open an address while a request waits, once for each request. Where no user
   * can, or should, the request fails.
   */
  #elicit({ id, params }: RpcRequest, call: WaitingCall | undefined): void {
    const { user } = this.#options;
    const answer = (action: string) => this.#reply({ jsonrpc: "2.0", id, result: { action } });
    // Undefined for an address that no user should open.
    const address = call?.hasElicited ? undefined : orUndefined(() => readAddress(params, this.#url));
    if (user === undefined || call === undefined || address === undefined) {
      answer("cancel");
      call?.fail(new ActionFailure([params]));
      return;
    }
    call.hasElicited = true;
    call.hold();
    const opened = user.open(address).catch(() => false);
    void opened.then((isOpened) => {
      call.restart(isOpened ? USER_MS : undefined);
      answer(isOpened ? "accept" : "decline");
    });
  }

  #reply(answer: RpcMessage): void {
    void this.notify(answer).catch(() => undefined);
  }

  #cancel({ id }: RpcRequest): void {
    void this.notify(cancelledMessage(id, "cancelled")).catch(() => undefined);
  }
}

function tooLongEvent(): AgentAuthError {
  return tooLong("an event", MAX_RESPONSE_LENGTH);
}

function readResult(response: unknown, { method }: RpcRequest): Record<string, unknown> {
  const { result } = response as { result?: unknown };
  if (!isJsonObject(result)) throw new SyntaxError(`the result of ${method} is not a JSON object`);
  const { resultType, ...rest } = result;
  if (resultType === undefined || resultType === "complete") return rest;
  const action = inputRequired(result);
  if (action !== undefined) throw action;
  const text = `the MCP server answers ${method} only after a dialogue, which this command cannot have`;
  throw new AgentAuthError("mcp_failed", text, { class: "remote" });
}

function noResponse({ method }: RpcRequest): AgentAuthError {
  const text = `the connection to the MCP server closed before the response to ${method} arrived`;
  return new AgentAuthError("connection_reset", text, { class: "unavailable" });
}
