import { isJsonObject } from "../http/strict-json.js";
import { errorBody } from "./errors.js";
import { httpFailureOf, RpcFailure } from "./failures.js";

/** The revision without sessions and without `initialize`: each request names it. */
export const SESSIONLESS_REVISION = "2026-07-28";

/** The protocol revisions that begin with `initialize`, newest first. */
export const REVISIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/** Whether the server may have refused `initialize` for the revision that the client offers. */
export function mayRefuseRevision(error: unknown): boolean {
  return httpFailureOf(error)?.status === 400 || supportedIn(error) !== undefined;
}

/** Whether the server refused a request for the revision in its `MCP-Protocol-Version` header, before it processed it. */
export function refusesRevision(error: unknown): boolean {
  const text = httpFailureOf(error)?.status === 400 ? errorBody(error).text : undefined;
  return text !== undefined && /\bprotocol[ _-]?version\b/i.test(text);
}

/**
 * The older revisions to offer after the server has refused one, newest first: the newest that the server names, or all
 * if it names none.
 */
export function olderRevisions(error: unknown, refused: string): string[] {
  const older = REVISIONS.slice(REVISIONS.indexOf(refused) + 1);
  const supported = supportedIn(error);
  if (supported) return older.filter((revision) => supported.includes(revision)).slice(0, 1);
  const { text = "" } = errorBody(error);
  const named = older.filter((revision) => text.includes(revision));
  return named.length > 0 ? named.slice(0, 1) : older;
}

/** The revisions in the data of a JSON-RPC error (lifecycle, "Error Handling"). */
function supportedIn(error: unknown): unknown[] | undefined {
  const data = error instanceof RpcFailure ? error.data : errorBody(error).error?.["data"];
  const supported = isJsonObject(data) ? data["supported"] : undefined;
  return Array.isArray(supported) ? supported : undefined;
}
