/** The network of a run, and what -v and --debug log of every request. */

import { parseUrl, shownUrl } from "../../http/address.js";
import type { Network } from "../../http/address-class.js";
import { type HttpEvent, readRequestId } from "../../http/buffered-response.js";
import { HttpHeaders, isRequest, ownFetch } from "../../http/http-message.js";
import { parseChallenges } from "../../oauth/model/challenge.js";
import type { NetworkOptions } from "../../profile/connection-settings.js";
import { CA_FLAG, certificateFiles, PROXY_FLAG, withSource } from "../../profile/connection-settings.js";
import type { Settings } from "../../profile/settings.js";
import { MASK, quote } from "../../redact.js";
import type { AgentEvent } from "../../telemetry/events.js";
import type { GlobalFlags } from "../flags/global.js";
import type { CommandContext, RunContext } from "../runtime/context.js";

/**
 * How requests leave this machine, by flags, settings and environment.
 *
 * @throws `AgentAuthError` `usage` for settings that contradict each other
 */
export function networkOptions(
  flags: Pick<GlobalFlags, "proxy" | "caFile">,
  settings: Settings,
  { io }: Pick<RunContext, "io">,
): NetworkOptions {
  return {
    proxy: withSource(flags.proxy, PROXY_FLAG),
    caFile: withSource(flags.caFile, CA_FLAG),
    systemCa: settings.useSystemCa,
    clientCertificate: certificateFiles(settings),
    env: io.env,
  };
}

type Fetch = typeof globalThis.fetch;

interface TraceOptions {
  say(line: string): void;
  /** Masks the secrets of this run. */
  redactor: CommandContext["redactor"];
  now: CommandContext["now"];
  /** Whether headers are logged, for `--debug`. */
  headers: boolean;
  /** Whether the query is logged: that of a login has secrets in it. */
  query: boolean;
}

/** How the flags want requests to be logged; undefined without `-v` and `--debug`. */
export function traceOptions(
  { verbose, debug }: Pick<GlobalFlags, "verbose" | "debug">,
  { io, redactor, now }: CommandContext,
  query: boolean,
): TraceOptions | undefined {
  if (!verbose && !debug) return undefined;
  const say = (line: string) => io.verbose(redactor.redact(line));
  return { say, redactor, now, headers: debug === true, query };
}

/** A `fetch` that logs each request and each response, never a body. */
export function tracedFetch(send: Fetch, trace: TraceOptions | undefined): Fetch {
  if (trace === undefined) return send;
  return ownFetch(async (input, init) => {
    const request = isRequest(input) ? input : undefined;
    const url = request?.url ?? String(input);
    const headers = new HttpHeaders(init?.headers ?? request?.headers);
    const startedAt = trace.now();
    trace.say(`> ${init?.method ?? request?.method ?? "GET"} ${shownUrl(url)}${trace.query ? hideQuery(url) : ""}`);
    sayHeaders(">", headers, trace);
    const response = await send(input, init);
    const id = readRequestId(response.headers);
    const after = `in ${Math.round(trace.now() - startedAt)} ms${id === undefined ? "" : `, request id ${id}`}`;
    trace.say(`< ${response.status} ${shownUrl(response.url || url)} ${after}`);
    sayHeaders("<", response.headers, trace);
    return response;
  }, send);
}

/** A network whose requests are logged. */
export function tracedNetwork(network: Network, trace: TraceOptions | undefined): Network {
  if (trace === undefined) return network;
  return {
    connectTo(server, exemptions) {
      const connection = network.connectTo(server, exemptions);
      return { ...connection, fetch: tracedFetch(connection.fetch, trace) };
    },
  };
}

/** Logs what {@link tracedFetch} does not see: failures and retries. */
export function eventLogger(trace: TraceOptions | undefined): ((event: AgentEvent | HttpEvent) => void) | undefined {
  if (trace === undefined) return undefined;
  return (event) => {
    if (event.type === "failure") trace.say(`< ${event.code}: ${event.message}`);
    if (event.type === "retry") trace.say(`  ${event.reason}: attempt ${event.attempt} in ${event.waitMs} ms`);
  };
}

function hideQuery(url: string): string {
  const pairs = [...new URL(url).searchParams].map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** Other headers may hold secrets: of those the names are logged. */
const SHOWN: ReadonlySet<string> = new Set(
  (
    "accept accept-encoding allow cache-control connection content-encoding content-length content-type date " +
    "expires keep-alive mcp-method mcp-protocol-version pragma request-id retry-after transfer-encoding " +
    "user-agent vary x-request-id"
  ).split(" "),
);
/** The known parameters of a challenge; the others may hold anything. */
const OF_CHALLENGE: readonly string[] = ["error", "scope", "resource_metadata"];
const MOST_HEADERS = 50;

function sayHeaders(mark: string, headers: Headers, { headers: isLogged, say }: TraceOptions): void {
  if (!isLogged) return;
  const all = [...headers];
  for (const [name, value] of all.slice(0, MOST_HEADERS)) say(`${mark}   ${name}: ${shownValue(name, value)}`);
  if (all.length > MOST_HEADERS) say(`${mark}   and ${all.length - MOST_HEADERS} more`);
}

function shownValue(name: string, value: string): string {
  if (SHOWN.has(name)) return value.slice(0, 300);
  if (name === "location") return shownUrl(value) || MASK;
  if (name === "www-authenticate") return challengeText(value) || MASK;
  const scheme = name === "authorization" ? /^[\w-]+ /.exec(value)?.[0] : undefined;
  return `${scheme ?? ""}${MASK}`;
}

function challengeText(value: string): string {
  const texts = parseChallenges(value).map(({ scheme, params }) => {
    const pairs = OF_CHALLENGE.flatMap((name) =>
      (params.get(name) ?? []).map((one) => `${name}=${quote(parseUrl(one) !== undefined ? shownUrl(one) : one)}`),
    );
    return `${scheme}:${pairs.length === 0 ? "" : ` ${pairs.join(" ")}`}`;
  });
  return texts.join(", ");
}
