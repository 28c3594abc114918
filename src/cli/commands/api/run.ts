import type { ManagementClient } from "../../../api/client.js";
import { AgentAuthError, isAgentAuthError, withHint } from "../../../errors.js";
import { refusal } from "../../../http/body.js";
import { quote } from "../../../redact.js";
import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";
import { printObject } from "../../output/object.js";
import type { CommandContext } from "../../runtime/context.js";

/** `api GET`: the JSON of the response, with secrets masked. */
export async function runApi(options: ApiOptions, context: CommandContext): Promise<undefined> {
  if (options.method.toUpperCase() !== "GET") {
    throw usage(`the method ${quote(options.method)} is not supported`, "the service has GET operations only");
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(options.path)) {
    throw usage(
      `the path ${quote(options.path)} is an absolute URL`,
      "give only its path, such as /api/v1/device; --base-url sets the service",
    );
  }
  const path = options.path.startsWith("/") ? options.path : `/${options.path}`;
  const query = (options.field ?? []).map(splitField);
  const service = await context.management();
  const response = await request(service, path, query, context);
  const body = await readObject(response);
  const format = options.output ?? "json";
  await printObject(context.io, format, body, { jq: options.jq, showSecrets: options.showSecrets, now: context.now });
  return undefined;
}

async function request(
  service: ManagementClient,
  path: string,
  query: [string, string][],
  context: CommandContext,
): Promise<Response> {
  try {
    return await service.get(path, query, { signal: context.signal });
  } catch (cause) {
    if (cause instanceof TypeError)
      throw usage(cause.message, "give only the path; pass parameters with -f name=value", cause);
    if (isAgentAuthError(cause) && cause.status === 404 && !path.startsWith("/api/")) {
      throw withHint(cause, "paths start with /api/v1, such as /api/v1/device");
    }
    throw cause;
  }
}

async function readObject(response: Response): Promise<object> {
  const text = await response.text();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Falls through to the error: the body is not a JSON object.
  }
  throw refusal("bad_content_type", `the response is not a JSON object; it starts with ${quote(text, 80)}`, {
    response,
    url: response.url,
  });
}

function splitField(pair: string): [string, string] {
  const at = pair.indexOf("=");
  if (at <= 0) throw usage(`-f ${quote(pair)} is not name=value`, "for example -f pool_id=<pool_id>");
  return [pair.slice(0, at), pair.slice(at + 1)];
}

function usage(message: string, hint: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint, cause });
}

/** Options of `api GET`. */
export interface ApiOptions extends GlobalFlags, OutputFlags {
  method: string;
  path: string;
  field?: string[];
}
