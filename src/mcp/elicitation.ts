import { AgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { checkBrowserUrl } from "../login/browser.js";
import { quote, wholeCharacters } from "../redact.js";
import { errorBody, RpcFailure } from "./errors.js";

/** What a server may request of the user of this client: to open an address, and to fill in no form. */
export const CAPABILITIES = { elicitation: { url: {} } };

/** The request of a server for something of its user. */
export const ELICITATION = "elicitation/create";

/** The notification that the user is done at an address (revision 2025-11-25). */
export const ELICITATION_COMPLETE = "notifications/elicitation/complete";

/** The error of a server that serves a request only once its user has opened an address (revision 2025-11-25). */
const URL_REQUIRED = -32_042;
/** A server that names more addresses than this is not served. */
const MAX_ADDRESSES = 3;
const MAX_MESSAGE = 500;

/** An address that a server needs its user to open: safe to open, with the words of the server, which are not escaped. */
export interface RequestedAddress {
  readonly url: string;
  readonly message: string;
  /** Names it in {@link ELICITATION_COMPLETE}. */
  readonly id: unknown;
}

/** A user who can open an address while a request waits. */
export interface PresentUser {
  /** Shows an address, and opens it if the user agrees. @returns whether the user agrees */
  open(address: RequestedAddress): Promise<boolean>;
  /**
   * Waits until the user is done at each address that was opened.
   *
   * @param done whether the server has said so; false where it does not say it
   * @returns whether the request is to be sent again
   */
  wait(done: Promise<boolean>): Promise<boolean>;
}

/** What a server needs of its user, and the members of the request that is sent again afterwards. */
export interface UserAction {
  readonly addresses: readonly RequestedAddress[];
  readonly again: Readonly<Record<string, unknown>>;
}

/** The failure of a request that needs the user, in whichever way the server said so. */
export class ActionFailure extends RpcFailure {
  readonly again: UserAction["again"];

  constructor(elicitations: readonly unknown[], again: UserAction["again"] = {}) {
    super({ code: URL_REQUIRED, message: "the server needs its user", data: { elicitations } });
    this.again = again;
  }
}

/** Whether a request of a server is one to open an address. */
export function isUrlMode(params: unknown): boolean {
  return isJsonObject(params) && params["mode"] === "url";
}

/** The failure for a result that is none before the user has opened addresses; undefined for any other one. */
export function inputRequired({ resultType, inputRequests, requestState }: Record<string, unknown>) {
  if (resultType !== "input_required" || !isJsonObject(inputRequests)) return undefined;
  const requests = Object.entries(inputRequests);
  const params = requests.flatMap(([, request]) =>
    isJsonObject(request) && request["method"] === ELICITATION && isUrlMode(request["params"])
      ? [request["params"]]
      : [],
  );
  if (params.length === 0 || params.length < requests.length) return undefined;
  const inputResponses = Object.fromEntries(requests.map(([name]) => [name, { action: "accept" }]));
  return new ActionFailure(params, { inputResponses, ...(requestState !== undefined && { requestState }) });
}

/**
 * What a server needs of its user before it serves a request; undefined for any other failure.
 *
 * @throws `AgentAuthError` `bad_address` for an address that no user should open
 */
export function actionIn(error: unknown, server: string): UserAction | undefined {
  const { code, data } =
    error instanceof RpcFailure ? error : { code: undefined, data: undefined, ...errorBody(error).error };
  const elicitations = code === URL_REQUIRED && isJsonObject(data) ? data["elicitations"] : undefined;
  if (!Array.isArray(elicitations) || elicitations.length === 0 || elicitations.length > MAX_ADDRESSES)
    return undefined;
  if (!elicitations.every(isUrlMode)) return undefined;
  const addresses = elicitations.map((params) => readAddress(params, server));
  return { addresses, again: error instanceof ActionFailure ? error.again : {} };
}

/** @throws `AgentAuthError` `bad_address` */
export function readAddress(params: unknown, server: string): RequestedAddress {
  const { url, message, elicitationId: id } = params as Record<string, unknown>;
  const words = typeof message === "string" ? wholeCharacters(message, MAX_MESSAGE) : "";
  const target = checkBrowserUrl(String(url), "the address to open", `the MCP server ${quote(server)}`);
  return { url: target, message: words, id };
}

/** The error where the user has not opened an address, and the request is not served without. */
export function userActionError(server: string, { url, message }: RequestedAddress): AgentAuthError {
  const words = message === "" ? "" : `: ${quote(message, MAX_MESSAGE)}`;
  const text = `the MCP server ${quote(server)} needs you to open an address at ${new URL(url).host}${words}`;
  return new AgentAuthError("user_action_required", text, {
    class: "auth",
    hint: "open the address in a browser, and run this again afterwards",
    remedy: { action: "open", url, server },
  });
}
