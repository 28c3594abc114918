import type { ManagementClient } from "../../../api/client.js";
import { type Page, validatePagination } from "../../../api/page.js";
import { isAgentAuthError, usageError, withHint } from "../../../errors.js";
import { shownUrl } from "../../../http/address.js";
import { badResponse } from "../../../http/buffered-response.js";
import { isJsonObject } from "../../../http/strict-json.js";
import { parseServerJson } from "../../../mcp/json-rpc.js";
import { quote, shellWord } from "../../../redact.js";
import type { GlobalFlags, OutputFlags } from "../../flags/global.js";
import { partialError } from "../../listing/summary.js";
import { rowColumns } from "../../output/columns.js";
import { leaves } from "../../output/value.js";
import { createWriter, printObject, type Writer } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";

const OFFSET = "pagination[offset]";

/** `api GET`: the JSON of the response, or of each page of a list, with secrets masked. */
export async function runApi(
  options: GlobalFlags & OutputFlags & { method: string; path: string; field?: string[]; paginate?: boolean },
  context: CommandContext,
): Promise<undefined> {
  if (options.method.toUpperCase() !== "GET")
    throw usageError(`the method ${quote(options.method)} is not supported`, "the service has GET operations only");
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(options.path))
    throw usageError(
      `the path ${quote(options.path)} is an absolute URL`,
      "give only its path, such as /api/v1/device; --base-url sets the service",
    );
  const { path, inPath } = splitPath(options.path);
  const query = [...inPath, ...(options.field ?? []).map(splitField)];
  const service = await context.management();
  const format = options.output ?? "json";
  const print = (body: object) => printObject(format, body, options, context);
  const isOneDocument = (format === "json" || format === "csv") && options.jq === undefined;
  if (!options.paginate) {
    await print(await readObject(await request(service, path, query, context)));
    return;
  }
  let next: number | undefined = firstOffset(query);
  let writer: Writer | undefined;
  for (let pages = 0; next !== undefined; pages++) {
    const offset: number = next;
    const isFirst = pages === 0 && !query.some(([name]) => name === OFFSET);
    const ofPage = query.filter(([name]) => name !== OFFSET);
    if (!isFirst) ofPage.push([OFFSET, String(offset)]);
    try {
      const response = await request(service, path, ofPage, context);
      const body = await readObject(response);
      if (isOneDocument) writer ??= createWriter(format, { ...chooseColumns(body), ...options }, context.io);
      await (writer ? writer.write([body]) : print(body));
      next = nextOffset(body, offset, response);
    } catch (thrown) {
      await writer?.abort();
      throw pages === 0 ? thrown : partial(thrown, offset, options.path, context.argv);
    }
  }
  await writer?.end();
}

function chooseColumns(page: object) {
  return rowColumns(
    leaves(page).map(({ path, key }) => ({ path, header: path, ...(key === "at" && { kind: "time" }) })),
  );
}

/** The path, with a slash before it, and the parameters of its query. */
function splitPath(text: string): { path: string; inPath: [string, string][] } {
  const [path = "", ...query] = text.split("?");
  return { path: path.startsWith("/") ? path : `/${path}`, inPath: [...new URLSearchParams(query.join("?"))] };
}

function firstOffset(query: readonly [string, string][]): number {
  const offsets = query.filter(([name]) => name === OFFSET);
  const [text = "0"] = offsets.map(([, value]) => value);
  if (offsets.length <= 1 && /^\d{1,15}$/.test(text)) return Number(text);
  throw usageError(`-f ${quote(`${OFFSET}=${text}`)} is not one offset`, "give one whole number, or leave it out");
}

/** The offset of the page after an answer; undefined after the last one. */
function nextOffset(body: object, offset: number, response: Response): number | undefined {
  const { summaries, pagination } = body as { summaries?: unknown; pagination?: unknown };
  if (!Array.isArray(summaries) || !isJsonObject(pagination)) {
    const message = "the answer is no page of a list, which has summaries and pagination";
    throw badResponse("bad_pagination", message, { response, url: response.url, hint: "leave --paginate out" });
  }
  const url = shownUrl(response.url);
  const page = { items: summaries, pagination, offset, url, response, requestId: undefined };
  const next = validatePagination(page as unknown as Page<object>);
  if (next !== null && typeof next !== "number") throw next;
  return next ?? undefined;
}

/** The error after some pages were printed, with the command that prints the others. */
function partial(thrown: unknown, offset: number, typedPath: string, argv: readonly string[]): unknown {
  if (!isAgentAuthError(thrown) || thrown.class === "aborted") return thrown;
  const { path, inPath } = splitPath(typedPath);
  const fields = inPath.flatMap(([name, value]) => ["-f", `${name}=${value}`]);
  const args = fields.length === 0 ? argv : argv.flatMap((word) => (word === typedPath ? [path, ...fields] : [word]));
  const rest = args.filter((word, index) => {
    const value = /^(?:-f|--field)$/.test(word) ? args[index + 1] : /^(?:-f|--field=)(.+)$/s.exec(word)?.[1];
    const isOffset = (text: string | undefined) => text?.startsWith(`${OFFSET}=`) === true;
    return !isOffset(value) && !(isOffset(word) && /^(?:-f|--field)$/.test(args[index - 1] ?? ""));
  });
  const command = ["agentauth", ...rest, "-f", `${OFFSET}=${offset}`].map(shellWord).join(" ");
  return partialError(thrown, `the pages ended before offset ${offset}`, `continue with: ${command}`, offset);
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
    // Another one is a bug, or what a package throws.
    if (cause instanceof TypeError && cause.message.startsWith("path "))
      throw usageError(cause.message, "give only the path; pass parameters with -f name=value", cause);
    if (isAgentAuthError(cause) && cause.status === 404 && !path.startsWith("/api/"))
      throw withHint(cause, "paths start with /api/v1, such as /api/v1/device");
    throw cause;
  }
}

async function readObject(response: Response): Promise<object> {
  const text = await response.text();
  try {
    const value = parseServerJson(text, true);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Falls through to the error: the body is not a JSON object.
  }
  throw badResponse("bad_content_type", `the response is not a JSON object; it starts with ${quote(text, 80)}`, {
    response,
    url: response.url,
  });
}

function splitField(pair: string): [string, string] {
  const at = pair.indexOf("=");
  if (at <= 0) throw usageError(`-f ${quote(pair)} is not name=value`, "for example -f pool_id=<pool_id>");
  return [pair.slice(0, at), pair.slice(at + 1)];
}
