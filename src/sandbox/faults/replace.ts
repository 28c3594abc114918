import type { ServiceErrorCode } from "../../error-codes.js";
import { errorResponse, jsonResponse, type SandboxResponse } from "../http/sandbox-response.js";
import { isReplacing } from "./controller.js";
import type { Fault, FaultOf } from "./faults.js";

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
