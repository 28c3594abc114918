import { AgentAuthError, type ErrorClass, SERVICE_ERROR_CODES } from "../errors.js";
import { refusal } from "../http/body.js";
import { type BufferedResponse, shownUrl } from "../http/buffered-response.js";
import { isJsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { checkShape, SHAPES, type Shape } from "./shapes.js";
import type { PaginationOutput, Sorting } from "./types.js";

/** The success body of a list operation, its parts checked to be of the right kind and no more. */
export interface Envelope<Item> {
  summaries: Item[];
  pagination: PaginationOutput;
  sorting: Sorting | undefined;
}

// These two say nothing about the request: the same request may succeed later. All others are a verdict on it.
const PASSING_CODES = new Set<string>(["unknown", "unexpected"]);
const KNOWN_CODES = new Set<string>(SERVICE_ERROR_CODES);
const AUTH_CODES = new Set<string>(["bad_authtoken", "not_authenticated"]);

/** Whether an answer with a retryable status may be asked for again: not when its body carries a verdict. */
export function mayRetry(reply: BufferedResponse): boolean {
  const code = errorBody(reply)?.code;
  return reply.status === 429 || code === undefined || !KNOWN_CODES.has(code) || PASSING_CODES.has(code);
}

/**
 * Reads a list operation's answer (`service.md`, Management list operations).
 *
 * @param mask masks secrets in text that the service sent
 * @throws `AgentAuthError`: the service's own code, or `http_error`, `server_error`, `rate_limited`,
 * `bad_content_type`, `bad_json`, `bad_envelope`, `bad_pagination`
 */
export function readEnvelope<Item extends object>(
  reply: BufferedResponse,
  mask: (text: string) => string,
): Envelope<Item> {
  const error = serviceError(reply, mask);
  if (error) throw error;
  const about = { response: reply.response, url: reply.url };
  if (reply.json === undefined) throw notJson(reply, mask);
  const body = reply.json;
  if (!isJsonObject(body)) throw refusal("bad_envelope", `the body is ${kindOf(body)}, not an object`, about);
  if (body["status"] !== "success" && body["status"] != null) {
    throw refusal(
      "bad_envelope",
      `status is ${quote(typeof body["status"] === "string" ? mask(body["status"]) : body["status"])}, neither "success" nor "error"`,
      about,
    );
  }
  const { summaries, pagination, sorting } = body;
  if (!Array.isArray(summaries)) {
    throw refusal("bad_envelope", `summaries is ${kindOf(summaries)}, not an array`, about);
  }
  const stranger = summaries.findIndex((item) => !isJsonObject(item));
  if (stranger >= 0) {
    throw refusal("bad_envelope", `summaries[${stranger}] is ${kindOf(summaries[stranger])}, not an object`, about);
  }
  // Without it a first page looks like a whole list, and a listing must end complete or with an error.
  if (!isJsonObject(pagination)) {
    const what = `pagination is ${kindOf(pagination)}, not an object: the end of the list is unknown`;
    throw refusal("bad_pagination", what, about);
  }
  return {
    // The contract's type, read loosely: `strict` checks the members (see requireDocumented).
    summaries: summaries as Item[],
    pagination: pagination as PaginationOutput,
    sorting: isJsonObject(sorting) ? (sorting as Sorting) : undefined,
  };
}

/** The whole answers as they are documented, by the resource that they list. */
const ANSWERS: Readonly<Record<"pool" | "domain" | "device", Shape>> = {
  pool: answerOf(SHAPES.pool, SHAPES.sorting),
  domain: answerOf(SHAPES.domain, SHAPES.sorting),
  device: answerOf(SHAPES.device, SHAPES.deviceSorting),
};

function answerOf(item: Shape, sorting: Shape): Shape {
  const status: Shape = { type: "string", enum: ["success"] };
  const summaries: Shape = { type: "array", items: item };
  return { type: "object", properties: { status, summaries, pagination: SHAPES.pagination, sorting } };
}

/**
 * Holds a list's answer to the documented shape, in every part: what `strict` asks for.
 *
 * @throws `AgentAuthError` `unexpected_shape`
 */
export function requireDocumented(kind: keyof typeof ANSWERS, reply: BufferedResponse): void {
  const problem = checkShape(ANSWERS[kind], reply.json);
  if (problem === undefined) return;
  const value = problem.value === undefined ? "" : ` ${quote(problem.value)}`;
  throw refusal("unexpected_shape", `${escapeText(problem.path)}${value} ${problem.rule}`, reply);
}

/** The error that an answer is, or undefined for a success. The body's code decides, the status only helps. */
export function serviceError(reply: BufferedResponse, mask: (text: string) => string): AgentAuthError | undefined {
  const body = errorBody(reply);
  if (body === undefined && reply.response.ok) return undefined;
  const { status } = reply;
  const code =
    (body?.code === undefined ? undefined : mask(body.code)) ??
    (status === 429 ? "rate_limited" : status >= 500 ? "server_error" : "http_error");
  const kind = classOf(code, status);
  const said = body?.message ?? "";
  const message =
    said === "" ? `HTTP ${status}` : `${cut(escapeText(mask(said)))} (${escapeText(code)}, HTTP ${status})`;
  return new AgentAuthError(code, `${shownUrl(reply.url)}: ${message}`, {
    class: kind,
    status,
    requestId: reply.requestId,
    url: shownUrl(reply.url),
    response: reply.response,
    hint: hintFor(code, status),
  });
}

/** At most 500 characters, none of them halved. */
function cut(text: string): string {
  return text.length > 500 ? [...text].slice(0, 500).join("") : text;
}

function classOf(code: string, status: number): ErrorClass {
  if (AUTH_CODES.has(code)) return "auth";
  if (status === 429) return "unavailable";
  if (KNOWN_CODES.has(code) && !PASSING_CODES.has(code)) return "remote";
  if (status >= 500 || status === 408) return "unavailable";
  return status === 401 ? "auth" : "remote";
}

function hintFor(code: string, status: number): string | undefined {
  if (code === "not_authenticated") return "give an API token";
  if (code === "bad_authtoken") return "the API token is wrong or has expired; give a valid one";
  if (status === 401) return "give a valid API token";
  if (code === "not_found") return "check the identifier; the API token may also belong to another account";
  return undefined;
}

/** An answer that is no success is read as the documented error body also where it lacks the `status` alone. */
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
  const about = { response: reply.response, url: reply.url };
  if (reply.text === "") return refusal("bad_json", "the body is empty, where JSON was expected", about);
  const type = reply.response.headers.get("content-type");
  return refusal(
    "bad_content_type",
    `the answer is ${type === null ? "of no stated type" : quote(type, 80)}, not application/json; it begins with ${quote(mask(reply.text.slice(0, 4000)), 80)}`,
    { ...about, hint: "a proxy or a login page may have answered in place of the service; check the base URL" },
  );
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  return Array.isArray(value)
    ? "an array"
    : typeof value === "object"
      ? "an object"
      : `the ${typeof value} ${quote(value, 60)}`;
}
