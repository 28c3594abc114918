import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { ServiceErrorCode } from "../../error-codes.js";
import { systemClock } from "../../http/deadline.js";
import { errorResponse, jsonResponse, type SandboxResponse } from "../http/requests.js";
import { findFault, isReplacing, type RoundTrip } from "./controller.js";
import type { Fault, FaultOf } from "./faults.js";

const DRIP_BYTES = 16;
const DRIP_MS = 100;
/** Time for the first half of a body to reach the reader before the reset does. */
const RESET_DELAY_MS = 20;

/**
 * Sends a response with the delivery faults that strike it. Never throws: the reader may disconnect at any moment.
 *
 * @param closing ends every wait, so that no slow response delays the end of the sandbox
 */
export async function respond(
  roundTrip: RoundTrip,
  answer: SandboxResponse | "reset",
  closing: AbortSignal,
): Promise<void> {
  const { request, response, faults } = roundTrip;
  const slow = findFault(faults, "slow-headers");
  if (slow) await sleep(slow.ms, closing);
  if (answer === "reset" || findFault(faults, "reset-after")) return resetConnection(request);
  const whole = typeof answer.body === "string" ? Buffer.from(answer.body) : answer.body;
  const body = findFault(faults, "truncated-json") ? whole.subarray(0, whole.length >>> 1) : whole;
  if (response.destroyed || response.headersSent) return;
  const headers = { ...answer.headers, ...response.getHeaders(), "content-length": body.length };
  response.writeHead(answer.status, headers as OutgoingHttpHeaders);
  if (findFault(faults, "reset-mid-body")) return resetMidBody(roundTrip, body, closing);
  const drip = findFault(faults, "slow-body");
  if (drip) return dripBody(response, body, drip, closing);
  response.end(body);
}

async function resetMidBody({ request, response }: RoundTrip, body: Buffer, closing: AbortSignal): Promise<void> {
  response.flushHeaders();
  response.write(body.subarray(0, body.length >>> 1));
  await sleep(RESET_DELAY_MS, closing);
  resetConnection(request);
}

async function dripBody(
  response: ServerResponse,
  body: Buffer,
  { bytes = DRIP_BYTES, ms = DRIP_MS }: FaultOf<"slow-body">,
  closing: AbortSignal,
): Promise<void> {
  response.flushHeaders();
  for (let sent = 0; sent < body.length && !response.destroyed; sent += bytes) {
    await sleep(ms, closing);
    response.write(body.subarray(sent, sent + bytes));
  }
  response.end();
}

async function sleep(ms: number, closing: AbortSignal): Promise<void> {
  await systemClock.sleep(ms, closing).catch(() => {});
}

// Not through the response: one that waits behind another on a keep-alive connection has no socket yet.
function resetConnection(request: IncomingMessage): void {
  request.socket.resetAndDestroy();
}

const LOGIN_PAGE =
  '<!doctype html><html><head><title>Log in</title></head><body><form method="post" action="/portal">' +
  '<input name="user"><input name="password" type="password"><button>Log in</button></form></body></html>';

const CODES: Readonly<Record<number, ServiceErrorCode>> = {
  400: "bad_request",
  401: "bad_authtoken",
  403: "not_permitted",
  404: "not_found",
  405: "invalid_action",
  501: "not_implemented",
};

/** What a fault puts in place of the response: another response, or a connection reset. */
export function replacementFor(faults: readonly Fault[]): SandboxResponse | "reset" | undefined {
  const fault = faults.find(isReplacing);
  switch (fault?.kind) {
    case "reset-before":
      return "reset";
    case "status":
      return statusResponse(fault);
    case "html":
      return htmlResponse(200, LOGIN_PAGE);
    case "redirect":
      return { status: fault.status ?? 302, headers: { location: fault.location }, body: "" };
    case "wrong-envelope":
      return jsonResponse(fault.body);
    default:
      return undefined;
  }
}

function statusResponse({ status, retryAfter, body = "service" }: FaultOf<"status">): SandboxResponse {
  const headers = retryAfter === undefined ? {} : { "retry-after": retryAfter };
  // RFC 9110: responses with these statuses have no body.
  const bodiless = status === 204 || status === 205 || status === 304;
  if (body === "empty" || bodiless) return { status, headers, body: "" };
  if (body === "html")
    return htmlResponse(status, `<html><body><h1>${status}</h1><p>gateway</p></body></html>`, headers);
  const code = CODES[status] ?? (status >= 500 ? "unexpected" : "unknown");
  return errorResponse(status, code, `a fault of the sandbox: status ${status}`, headers);
}

function htmlResponse(status: number, body: string, headers: Readonly<Record<string, string>> = {}): SandboxResponse {
  return { status, headers: { "content-type": "text/html; charset=utf-8", ...headers }, body };
}

/** A list response whose fields faults change. */
interface LooseEnvelope {
  [field: string]: unknown;
  pagination: Record<string, unknown> & { page_offset: number; page_size: number };
  summaries: Record<string, unknown>[];
}

// Escape sequences, bidi controls, invisible characters, line breaks and a spreadsheet formula.
const HOSTILE_TITLES: readonly string[] = [
  "\u001b[31mred\u001b[0m\u001b]0;title\u0007",
  "\u001b]52;c;Y2FsYw==\u0007clipboard",
  "\u001b]8;;https://evil.example/\u001b\\link\u001b]8;;\u001b\\",
  "admin\u202egnp.exe",
  "\u2066isolated\u2069\u061c\u200b\u200d\u2060\ufeff",
  "nul\u0000bell\u0007back\b\b\bdel\u007f",
  "\u009b2J\u0090c1\u009c",
  "line one\r\nerror: line two\u2028three\u2029four",
  "tag\u{e0041}\u{e007f}",
  `zalgo${"\u0301".repeat(1000)}`,
  '=HYPERLINK("https://evil.example")',
  "lone surrogate \ud800",
];

const DEFAULT_MISSING = ["title", "last_seen", "dynamic_client_details"];

type Edit = (body: LooseEnvelope, fault: Fault) => void;

const EDITS: { [K in Fault["kind"]]?: (body: LooseEnvelope, fault: Fault & { kind: K }) => void } = {
  "stuck-offset": ({ pagination }) => {
    pagination["next_page_offset"] = pagination.page_offset;
  },
  "cycling-offset": ({ pagination }) => {
    pagination["next_page_offset"] = Math.max(0, pagination.page_offset - pagination.page_size);
  },
  "bad-offset": ({ pagination }, { value }) => {
    pagination["next_page_offset"] = value;
  },
  "omit-pagination": ({ pagination }) => {
    // Omitted when the body is serialised, so that other faults can still change it.
    pagination["toJSON"] = () => undefined;
  },
  "unknown-enum": ({ summaries }) => {
    for (const summary of summaries) {
      summary["status"] = "paused";
      if ("session_type" in summary) summary["session_type"] = "quantum";
    }
  },
  "extra-fields": (body) => {
    const extra = { nested: [1, null, { deep: true }] };
    for (const part of [body, body.pagination, ...body.summaries]) part["x_undocumented"] = extra;
  },
  "missing-fields": ({ summaries }, { fields = DEFAULT_MISSING }) => {
    for (const summary of summaries) for (const field of fields) delete summary[field];
  },
  "hostile-text": ({ summaries }, { text }) => {
    for (const [index, summary] of summaries.entries())
      summary["title"] = text ?? HOSTILE_TITLES[index % HOSTILE_TITLES.length];
  },
};

/** Changes a list response in place as the faults require. */
export function reshape(envelope: object, faults: readonly Fault[]): void {
  for (const fault of faults) (EDITS[fault.kind] as Edit | undefined)?.(envelope as LooseEnvelope, fault);
}
