import { isAgentAuthError } from "../../../errors.js";
import { discardBody } from "../../../http/buffered-response.js";
import { followSignal } from "../../../http/deadline.js";
import { networkError } from "../../../http/network-error.js";
import { type ListKind, requireScope } from "../../listing/scope.js";
import { openListing } from "../../listing/source.js";
import { type Checks, failed, ok, skipped, warning } from "./check.js";

/** The lists, that of the widest scope first. */
const LISTS: readonly ListKind[] = [
  { noun: "domains", scope: "account" },
  { noun: "pools", scope: "domain" },
  { noun: "devices", scope: "pool" },
];

// The service's error codes for a request without its parameter.
const INCOMPLETE: ReadonlySet<string> = new Set(["bad_request", "required_value", "invalid_value"]);

/** `Date` has whole seconds, and the response took time to arrive. */
const HARMLESS_S = 30;
/** Beyond this, tokens appear expired or not yet valid to the servers that check them. */
const HARMFUL_S = 300;

/** The service, which needs `--online`, and the MCP server, where one is given. */
export const ONLINE_CHECKS = {
  /**
   * Requests the smallest list that the settings allow. Without an account, a domain or a pool there is nothing to list:
   * the error about the missing parameter shows that the service responds.
   */
  async service({ options, context }) {
    if (!options.online) return skipped("no request was sent", "agentauth doctor --online sends one");
    const { signal } = context;
    const settings = context.settings();
    const { baseUrl } = settings;
    if (baseUrl === undefined) return skipped("base_url is not set");
    const kind = LISTS.find(({ scope }) => settings[scope] !== undefined);
    const service = await context.management();
    if (kind === undefined) {
      await service.get("/api/v1/domain", [], { signal }).catch((error: unknown) => {
        if (!isAgentAuthError(error) || !INCOMPLETE.has(error.code)) throw error;
      });
      return ok(`${baseUrl.value}: responds; no account, domain or pool is set to list`);
    }
    const id = requireScope(kind.scope, settings, "doctor --online");
    const { pagination } = await openListing(service, kind, id, { pageSize: 1 }, { limit: 1, signal }).firstPage();
    return ok(`${baseUrl.value}: lists the ${kind.noun} of the ${kind.scope} (${pagination.item_count ?? "some"})`);
  },

  /** The difference between this machine's clock and that of the MCP server, else the service's, by a request without a token. */
  async clock({ options, context }) {
    const { url = options.online ? context.settings().baseUrl?.value : undefined, timeout = 10 } = options;
    if (url === undefined) return skipped("no request was sent", "agentauth doctor --online sends one");
    // Node 20 may collect the timer of `AbortSignal.any([AbortSignal.timeout(…)])` before it fires.
    const limit = followSignal(context.signal, timeout * 1000);
    let date: number;
    try {
      const connection = (await context.network()).connectTo(new URL(url), new Set());
      const response = await connection.fetch(url, { redirect: "manual", signal: limit.signal });
      await discardBody(response);
      date = Date.parse(response.headers.get("date") ?? "");
    } catch (error) {
      throw networkError(error, url);
    } finally {
      limit.release();
    }
    const { host } = new URL(url);
    if (Number.isNaN(date)) return skipped(`${host} did not send its time`);
    const ahead = Math.round((context.now() - date) / 1000);
    if (Math.abs(ahead) <= HARMLESS_S) return ok(`agrees with ${host} within 30 s`);
    const result = `${Math.abs(ahead)} s ${ahead < 0 ? "behind" : "ahead of"} ${host}`;
    const hint = "set the clock of this machine, preferably by NTP";
    return Math.abs(ahead) > HARMFUL_S ? failed(result, hint) : warning(result, hint);
  },
} satisfies Checks;
