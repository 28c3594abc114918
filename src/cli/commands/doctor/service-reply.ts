import type { ManagementClient } from "../../../api/client.js";
import type { Page } from "../../../api/page.js";
import type { OpenSorting } from "../../../api/types.js";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import type { Settings } from "../../../profile/settings.js";
import { type ListKind, requireScope } from "../../listing/scope.js";
import { openListing } from "../../listing/source.js";
import type { CommandContext } from "../../runtime/context.js";

/** The response to a small request. */
interface SmallResponse {
  /** What was requested, and its result, as text. */
  result: string;
  response: Response | undefined;
  /** The page of the list; undefined if there is nothing to list. */
  page?: Page<object>;
}

/** The outcome of the one request to the service. */
export interface ServiceReply extends Partial<SmallResponse> {
  /** Set if the request failed. */
  error?: AgentAuthError;
  /** This machine's clock at the response. */
  now: number;
}

/** Sends the one request to the service. */
export async function fetchOnce(context: CommandContext): Promise<ServiceReply> {
  const service = await context.management();
  try {
    return { ...(await smallestList(service, context.settings(), context.signal)), now: context.now() };
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    return { error, response: error.response, now: context.now() };
  }
}

/** The lists, that of the widest scope first. */
const LISTS: readonly ListKind[] = [
  { noun: "domains", scope: "account" },
  { noun: "pools", scope: "domain" },
  { noun: "devices", scope: "pool" },
];

/** The smallest list that the settings allow. */
export async function smallestList(
  service: ManagementClient,
  settings: Settings,
  signal: AbortSignal,
  sort?: OpenSorting,
): Promise<SmallResponse> {
  const kind = LISTS.find(({ scope }) => settings[scope] !== undefined);
  if (kind === undefined) return withoutScope(service, signal);
  const id = requireScope(kind.scope, settings, "doctor --online");
  const page = await openListing(service, kind, id, { pageSize: 1 }, { limit: 1, signal, sort }).firstPage();
  const result = `lists the ${kind.noun} of the ${kind.scope} (${page.pagination.item_count ?? "some"})`;
  return { result, response: page.response, page };
}

// The service's error codes for a request without its parameter.
const INCOMPLETE: ReadonlySet<string> = new Set(["bad_request", "required_value", "invalid_value"]);

/** Without an account, a domain or a pool there is nothing to list; an error about the missing parameter is a response too. */
async function withoutScope(service: ManagementClient, signal: AbortSignal): Promise<SmallResponse> {
  const result = "responds; no account, domain or pool is set to list";
  try {
    return { result, response: await service.get("/api/v1/domain", [], { signal }) };
  } catch (error) {
    if (isAgentAuthError(error) && INCOMPLETE.has(error.code)) return { result, response: error.response };
    throw error;
  }
}
