import { AgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import type { HttpChannel, Receive } from "./http-channel.js";
import {
  INITIALIZE,
  INITIALIZED,
  isRpcResponse,
  type RpcMessage,
  type RpcRequest,
  type RpcResponse,
  readParam,
} from "./json-rpc.js";

/** How long the server may take for each response that begins a new session. */
const MAX_RESPONSE_MS = 30_000;

/** What the host and the server agreed on. */
interface Agreement {
  readonly params: unknown;
  readonly protocolVersion: string;
}

/** What {@link SessionRecovery} reports to. */
export interface SessionRecoveryOptions {
  url: string;
  onWarning(text: string): void;
}

/** Begins a new session in place of one that the server has lost, with what the host sent in the lost one. */
export class SessionRecovery {
  readonly #options: SessionRecoveryOptions;
  #agreement: Agreement | undefined;
  /** Requests whose effect is part of the session: subscriptions and the log level. */
  readonly #state = new Map<string, RpcRequest>();

  constructor(options: SessionRecoveryOptions) {
    this.#options = options;
  }

  /** Whether the host has initialized a session. */
  get isPossible(): boolean {
    return this.#agreement !== undefined;
  }

  /** Records what a new session must repeat, and returns the revision if both sides just agreed on it. */
  observe(request: RpcRequest, { result }: RpcResponse): string | undefined {
    if (!isJsonObject(result)) return undefined;
    const { protocolVersion } = result;
    const subscription = `subscription ${readParam(request, "uri")}`;
    if (request.method === INITIALIZE && typeof protocolVersion === "string") {
      this.#agreement = { params: request.params, protocolVersion };
      this.#state.clear();
      return protocolVersion;
    }
    if (request.method === "resources/subscribe") this.#state.set(subscription, request);
    else if (request.method === "resources/unsubscribe") this.#state.delete(subscription);
    else if (request.method === "logging/setLevel") this.#state.set("level", request);
    return undefined;
  }

  /**
   * Begins a session with a channel that was not used yet.
   *
   * @param onMessage receives the server's messages that are no responses
   * @throws the error of the channel, or `AgentAuthError` if the server refuses the session or agrees to another
   * revision than the one that the host speaks
   */
  async begin(http: HttpChannel, onMessage: Receive): Promise<void> {
    const { url, onWarning } = this.#options;
    const ask = createRequester(http, onMessage);
    const { params, protocolVersion } = this.#agreement ?? {};
    const { result, error } = await ask({ jsonrpc: "2.0", id: "agentauth-initialize", method: INITIALIZE, params });
    if (!isJsonObject(result) || protocolVersion === undefined || result["protocolVersion"] !== protocolVersion) {
      const why = error
        ? quote(error.message, 300)
        : `its protocol revision is no longer ${quote(protocolVersion ?? "", 80)}`;
      const message = `the MCP server ${quote(url)} has ended the session, and a new one cannot replace it: ${why}; restart this server in the host`;
      throw new AgentAuthError("mcp_failed", message, { class: "remote" });
    }
    http.revision = protocolVersion;
    await http.notify({ jsonrpc: "2.0", method: INITIALIZED });
    const repeated = [...this.#state.values()].map(async (request, index) => {
      const response = await ask({ ...request, id: `agentauth-${index}` });
      if (response.error) onWarning(`${quote(request.method, 80)}: the server refuses it in its new session`);
    });
    await Promise.all(repeated);
  }
}

/** A function that sends a request and returns its response; all other messages of the server go to `onMessage`. */
function createRequester(http: HttpChannel, onMessage: Receive) {
  return (request: RpcRequest): Promise<RpcResponse> => {
    const abort = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const response = new Promise<RpcResponse>((resolve, reject) => {
      const text = `the MCP server sent no response to ${quote(request.method, 80)}`;
      const noResponse = () => reject(new AgentAuthError("mcp_failed", text, { class: "remote" }));
      timer = setTimeout(noResponse, MAX_RESPONSE_MS);
      const receive = (message: RpcMessage) => {
        if (!isRpcResponse(message)) onMessage(message);
        else if (message.id === request.id) resolve(message);
      };
      const fail = (error: unknown) => (isConnectionReset(error) ? noResponse() : reject(error));
      http.request(request, { abort, receive }).then(noResponse, fail);
    });
    return response.finally(() => {
      clearTimeout(timer);
      // Nothing follows the response, even if the server leaves its stream open.
      abort.abort();
    });
  };
}

/** Whether a stream ended before its response. */
function isConnectionReset(error: unknown): boolean {
  return error instanceof AgentAuthError && error.code === "connection_reset";
}
