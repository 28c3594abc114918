import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { AgentAuthError, usageError } from "../../../errors.js";
import { HttpHeaders, TOKEN } from "../../../http/http-headers.js";
import { userAgent } from "../../../http/version.js";
import { quote } from "../../../redact.js";
import { parseHeaderLine } from "../../clients/header-line.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { AgentFlags } from "../../flags/agent.js";
import { readStream } from "../../io/stream.js";
import type { CommandContext } from "../../runtime/context.js";

/** Options of `request`. */
export interface RequestFlags extends Omit<AgentFlags, "output"> {
  url: string;
  method?: string;
  header?: string[];
  data?: string;
  include?: boolean;
}

/** A request without its token. */
export interface OutgoingRequest {
  url: string;
  method: string;
  headers: Headers;
  body?: Uint8Array<ArrayBuffer>;
}

/** The body is buffered, since it is sent again after a rejected token. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** The types that an MCP server requires (Streamable HTTP transport), then anything else. */
const ACCEPT = "application/json, text/event-stream, */*;q=0.5";

/**
 * The request that the flags describe, its body read.
 *
 * @throws `AgentAuthError` `usage`
 */
export async function readRequest(options: RequestFlags, context: CommandContext): Promise<OutgoingRequest> {
  const url = addressOf(options.url);
  const headers = headersOf(options.header ?? []);
  const method = methodOf(options);
  const body = options.data === undefined ? undefined : await bodyOf(options.data, context);
  if (!headers.has("accept")) headers.set("accept", ACCEPT);
  if (!headers.has("user-agent")) headers.set("user-agent", userAgent("agentauth-cli"));
  if (body && !headers.has("content-type")) headers.set("content-type", contentTypeOf(body));
  return { url, method, headers, ...(body && { body }) };
}

function addressOf(value: string): string {
  const url = parseMcpUrlArgument(value);
  // A fragment is never sent, so it is a mistake.
  if (value.includes("#")) {
    throw usageError(`the URL of the MCP server ${quote(value)} must not contain a fragment`, 'leave out the "#"');
  }
  return url;
}

function methodOf({ method, data }: RequestFlags): string {
  if (method === undefined) return data === undefined ? "GET" : "POST";
  const verb = method.toUpperCase();
  if (!TOKEN.test(verb))
    throw usageError(`--method ${quote(method, 80)} is not an HTTP method`, "for example -X DELETE");
  if (["CONNECT", "TRACE", "TRACK"].includes(verb)) {
    throw usageError(`--method ${verb} is not supported with a token`, "for example -X DELETE");
  }
  if (data !== undefined && (verb === "GET" || verb === "HEAD")) {
    throw usageError(`--method ${verb} has no body, but --data is given`, "leave --method out to send it with POST");
  }
  return verb;
}

function headersOf(lines: readonly string[]): Headers {
  const headers = new HttpHeaders();
  for (const line of lines) {
    const { name, value } = parseHeaderLine(line, "--header");
    if (name.toLowerCase() === "authorization") {
      throw usageError(
        `--header ${quote(name, 40)} is reserved for the server's token`,
        "leave it out: the token is added to the request",
      );
    }
    headers.append(name, value);
  }
  return headers;
}

async function bodyOf(data: string, { io, signal }: CommandContext): Promise<Uint8Array<ArrayBuffer>> {
  if (data === "-" || data === "@-") return readAll(io.stdin.stream, "standard input", signal);
  if (data.startsWith("@")) return readAll(createReadStream(data.slice(1)), `the file ${quote(data.slice(1))}`, signal);
  return new TextEncoder().encode(data);
}

/** Reads a whole stream. */
async function readAll(stream: Readable, name: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const tooLong = () => usageError(`--data: ${name} is longer than ${MAX_BODY_BYTES} bytes`, "send a shorter body");
  try {
    return await readStream(stream, { maxBytes: MAX_BODY_BYTES, tooLong, signal });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (signal.aborted || error instanceof AgentAuthError || code === undefined) throw error;
    throw usageError(`--data: ${name} cannot be read (${code})`, '--data - sends a text that begins with "@"', error);
  }
}

function contentTypeOf(body: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return "application/octet-stream";
  }
  try {
    JSON.parse(text);
    return "application/json";
  } catch {
    return "text/plain;charset=utf-8";
  }
}
