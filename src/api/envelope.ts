import { SERVICE_ERROR_CODES } from "../error-codes.js";
import { type Advice, AgentAuthError, type ErrorClass } from "../errors.js";
import { shownUrl } from "../http/address.js";
import { type BufferedResponse, badResponse, parseIfJson } from "../http/buffered-response.js";
import { isJsonObject, parseAnyJson } from "../http/strict-json.js";
import { escapeText, hideClientSecret, quote } from "../redact.js";
import type { Page } from "./page.js";
import { checkShape, SHAPES, type Shape } from "./shapes.js";
import type { Check, PaginationOutput, Sorting } from "./types.js";

/** The success body of a list operation; only the types of its members are checked. */
export interface Envelope<Item> {
  summaries: Item[];
  pagination: PaginationOutput;
  sorting: Sorting | undefined;
}

// These two are not about the request: the same request may succeed later. All other codes are final.
const TRANSIENT_CODES = new Set<string>(["unknown", "unexpected"]);
const KNOWN_CODES = new Set<string>(SERVICE_ERROR_CODES);
const AUTH_CODES = new Set<string>(["bad_authtoken", "not_authenticated"]);

/** Whether a response with a retryable status may be retried: not when its body carries a final code. */
export function mayRetry(reply: BufferedResponse): boolean {
  const code = errorBody(reply)?.code;
  return reply.status === 429 || code === undefined || !KNOWN_CODES.has(code) || TRANSIENT_CODES.has(code);
}

/**
 * Reads the response of a list operation (`service.md`, Management list operations).
 *
 * @param mask masks secrets in text that the service sent
 * @throws `AgentAuthError`: the service's own code, or `http_error`, `server_error`, `rate_limited`,
 * `bad_content_type`, `bad_json`, `bad_envelope`, `bad_pagination`
 */
export function readEnvelope<Item extends object>(
  reply: BufferedResponse,
  mask: (text: string) => string,
): Envelope<Item> {
  if (reply.json === undefined) reply.json = envelopeIn(reply.text);
  const error = serviceError(reply, mask);
  if (error) throw error;
  const details = { response: reply.response, url: reply.url };
  if (reply.json === undefined) throw notJson(reply, mask);
  const body = reply.json;
  if (!isJsonObject(body))
    throw badResponse("bad_envelope", `the body is ${describeKind(body)}, not an object`, details);
  if (body["status"] !== "success" && body["status"] != null) {
    const message = `status is ${quote(typeof body["status"] === "string" ? mask(body["status"]) : body["status"])}, neither "success" nor "error"`;
    throw badResponse("bad_envelope", message, details);
  }
  const { summaries, pagination, sorting } = body;
  if (!Array.isArray(summaries))
    throw badResponse("bad_envelope", `summaries is ${describeKind(summaries)}, not an array`, details);
  const invalidIndex = summaries.findIndex((item) => !isJsonObject(item));
  if (invalidIndex >= 0) {
    const message = `summaries[${invalidIndex}] is ${describeKind(summaries[invalidIndex])}, not an object`;
    throw badResponse("bad_envelope", message, details);
  }
  // Without it the first page would pass for the whole list, and a listing must end complete or with an error.
  if (!isJsonObject(pagination)) {
    const what = `pagination is ${describeKind(pagination)}, not an object: the end of the list is unknown`;
    throw badResponse("bad_pagination", what, details);
  }
  return {
    // The contract's type, read loosely: `strict` checks the members (see requireDocumented).
    summaries: summaries as Item[],
    pagination: pagination as unknown as PaginationOutput,
    sorting: isJsonObject(sorting) ? (sorting as Sorting) : undefined,
  };
}

/** The envelope in a body that is not declared as JSON; not where a character was replaced because it was no UTF-8. */
function envelopeIn(text: string): unknown {
  const body = /^\s*\{/.test(text) && !text.includes("\ufffd") ? parseIfJson(text) : undefined;
  return isJsonObject(body) && (Array.isArray(body["summaries"]) || body["status"] === "error") ? body : undefined;
}

export type ListedKind = "pool" | "domain" | "device";

/** The documented responses, by what they list. */
const RESPONSES: Readonly<Record<ListedKind, Shape>> = {
  pool: responseShape(SHAPES.pool, SHAPES.sorting),
  domain: responseShape(SHAPES.domain, SHAPES.sorting),
  device: responseShape(SHAPES.device, SHAPES.deviceSorting),
};

function responseShape(item: Shape, sorting: Shape): Shape {
  const status: Shape = { type: "string", enum: ["success"] };
  const summaries: Shape = { type: "array", items: item };
  const order = { ...sorting, optional: true };
  return { type: "object", properties: { status, summaries, pagination: SHAPES.pagination, sorting: order } };
}

/**
 * Checks that a list response has the documented shape, in every part, for `strict`.
 *
 * @throws `AgentAuthError` `unexpected_shape`
 */
export function requireDocumented(kind: ListedKind, reply: BufferedResponse, checks: ReadonlySet<Check>): void {
  if (!checks.has("shape") && !checks.has("nulls") && !checks.has("fields")) return;
  const problem = checkShape(RESPONSES[kind], reply.json, checks);
  if (problem === undefined) return;
  const value = problem.value === undefined ? "" : ` ${quote(problem.value)}`;
  throw badResponse("unexpected_shape", `${escapeText(problem.path)}${value} ${problem.rule}`, reply);
}

/** The error of a response, or undefined for a success. The code in the body decides before the status. */
export function serviceError(reply: BufferedResponse, mask: (text: string) => string): AgentAuthError | undefined {
  const body = errorBody(reply);
  if (body === undefined && reply.response.ok) return undefined;
  const { status, requestId, response } = reply;
  const url = shownUrl(reply.url);
  const code =
    (body?.code === undefined ? undefined : mask(body.code)) ??
    (status === 429 ? "rate_limited" : status >= 500 ? "server_error" : "http_error");
  const serviceMessage = body?.message ?? "";
  const message =
    serviceMessage === ""
      ? `HTTP ${status}`
      : `${cut(escapeText(mask(serviceMessage)))} (${escapeText(code)}, HTTP ${status})`;
  const details = { class: classifyError(code, status), status, requestId, url, response };
  return new AgentAuthError(code, `${url}: ${message}`, { ...details, ...adviceFor(code, status) });
}

/** At most 500 characters, without splitting a surrogate pair. */
function cut(text: string): string {
  return [...text].slice(0, 500).join("");
}

function classifyError(code: string, status: number): ErrorClass {
  if (AUTH_CODES.has(code)) return "auth";
  if (status === 429) return "unavailable";
  if (KNOWN_CODES.has(code) && !TRANSIENT_CODES.has(code)) return "remote";
  if (status >= 500 || status === 408) return "unavailable";
  return status === 401 ? "auth" : "remote";
}

function adviceFor(code: string, status: number): Advice {
  const remedy = { action: "configure", option: "apiToken" } as const;
  if (code === "not_authenticated") return { hint: "give an API token", remedy };
  if (code === "bad_authtoken") return { hint: "the API token is wrong or has expired; give a valid one", remedy };
  if (status === 401) return { hint: "give a valid API token", remedy };
  if (code === "not_found") return { hint: "check the identifier; the API token may also belong to another account" };
  return {};
}

/** A failed response is read as the documented error body even where only its `status` member is missing. */
function errorBody(reply: BufferedResponse): { code: string | undefined; message: string | undefined } | undefined {
  const body = reply.json;
  if (!isJsonObject(body)) return undefined;
  const { status, code, message } = body;
  const isError = status === "error" || (!reply.response.ok && status == null && typeof code === "string");
  if (!isError) return undefined;
  return {
    code: typeof code === "string" && code !== "" ? code.slice(0, 100) : undefined,
    message: typeof message === "string" ? message : undefined,
  };
}

function notJson(reply: BufferedResponse, mask: (text: string) => string): AgentAuthError {
  const details = { response: reply.response, url: reply.url };
  if (reply.text === "") return badResponse("bad_json", "the body is empty, where JSON was expected", details);
  const type = reply.response.headers.get("content-type");
  const message = `the answer is ${type === null ? "of no stated type" : quote(type, 80)}, not application/json; it begins with ${quote(mask(reply.text.slice(0, 4000)), 80)}`;
  const hint = "a proxy or a login page may have answered in place of the service; check the base URL";
  return badResponse("bad_content_type", message, { ...details, hint });
}

function describeKind(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  return Array.isArray(value)
    ? "an array"
    : typeof value === "object"
      ? "an object"
      : `the ${typeof value} ${quote(value, 60)}`;
}

type CallFetch = (request: Request) => Promise<Response>;

/**
 * Makes one call through openapi-fetch and returns its buffered response, which openapi-fetch does not pass on.
 *
 * @param call has to pass its argument on as the `fetch` of the call
 * @throws TypeError where a middleware replaced the response
 */
export async function readBufferedResponse(
  call: (fetch: CallFetch) => Promise<{ response: Response }>,
  send: (request: Request) => Promise<BufferedResponse>,
): Promise<BufferedResponse> {
  const read: { reply?: BufferedResponse } = {};
  const { response } = await call(async (request) => {
    read.reply = await send(request);
    return read.reply.response;
  });
  if (read.reply?.response !== response)
    throw new TypeError("a middleware replaced a response; it must pass on the response that it was given");
  return read.reply;
}

/** Makes the body of a consumed response readable again, any number of times; returns the same object. */
export function makeReadable(reply: BufferedResponse): BufferedResponse {
  const { text, response } = reply;
  const { status, statusText, headers, url } = response;
  Object.defineProperties(response, {
    body: { value: null },
    bodyUsed: { value: false },
    text: { value: async () => text },
    json: { value: async () => hideSecrets(parseAnyJson(text)) },
    arrayBuffer: { value: async () => new TextEncoder().encode(text).buffer },
    blob: { value: async () => new Blob([text]) },
    bytes: { value: async () => new TextEncoder().encode(text) },
    clone: {
      value: () => {
        const copy = new Response(null, { status, statusText, headers: [...headers] });
        return makeReadable({ ...reply, response: Object.defineProperty(copy, "url", { value: url }) }).response;
      },
    },
  });
  return reply;
}

/** Makes the client secrets in a list response print and serialise as a mask; returns the same value. */
export function hideSecrets<T>(body: T): T {
  if (!isJsonObject(body) || !Array.isArray(body["summaries"])) return body;
  for (const item of body["summaries"]) if (isJsonObject(item)) hideSecret(item);
  return body;
}

export function hideSecret(item: object): void {
  const details = "dynamic_client_details" in item ? item.dynamic_client_details : undefined;
  if (typeof details === "object" && details !== null) hideClientSecret(details);
}

/** A page as it was read; the getters of its class are not enumerable. */
export class ReceivedPage<T> implements Page<T> {
  readonly items: T[];
  readonly pagination: PaginationOutput;
  readonly sorting: Sorting | undefined;
  readonly offset: number;
  duplicates = 0;
  unusable: number[] = [];
  readonly requestId: string | undefined;
  readonly #address: string;
  readonly #response: Response;

  constructor({ summaries, pagination, sorting }: Envelope<T>, reply: BufferedResponse, offset: number) {
    this.items = summaries;
    this.pagination = pagination;
    this.sorting = sorting;
    this.offset = offset;
    this.requestId = reply.requestId;
    this.#address = reply.url;
    this.#response = reply.response;
  }

  get url(): string {
    return shownUrl(this.#address);
  }

  get response(): Response {
    return this.#response;
  }
}
