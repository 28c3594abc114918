import { refusal, saysJson } from "./body.js";
import type { BufferedResponse } from "./buffered-response.js";
import { isJsonObject, parseStrictJson } from "./strict-json.js";

/**
 * Parses an OAuth document: of a JSON media type, without duplicate names, not nested too deep.
 *
 * @throws `AgentAuthError` `bad_content_type`, `bad_json`, `bad_envelope`
 */
export function strictObject(reply: BufferedResponse): Record<string, unknown> {
  if (!saysJson(reply.response.headers)) {
    const type = reply.response.headers.get("content-type") ?? "nothing";
    const message = `the response says it is ${type.slice(0, 80)}, not application/json`;
    const hint = /\bhtml\b/i.test(type)
      ? "a proxy or a login page may have answered instead"
      : "the server's owner must send it as application/json (RFC 8259 section 11)";
    throw refusal("bad_content_type", message, { ...reply, hint });
  }
  let value: unknown;
  try {
    value = parseStrictJson(reply.text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "";
    throw refusal("bad_json", `not acceptable JSON: ${reason}`, { ...reply, cause });
  }
  if (!isJsonObject(value)) throw refusal("bad_envelope", "the body is not a JSON object", reply);
  return value;
}

/** The response, which must not be compressed: the request did not accept that. */
export function uncompressed(reply: BufferedResponse): BufferedResponse {
  const coding = reply.response.headers.get("content-encoding");
  if (coding === null || coding === "identity") return reply;
  throw refusal("bad_content_type", "the response is compressed although that was not asked for", reply);
}
