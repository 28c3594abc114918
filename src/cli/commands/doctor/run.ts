import { release } from "node:os";
import { isAgentAuthError } from "../../../errors.js";
import { parseUrl, percentDecoded } from "../../../http/address.js";
import { discardBody } from "../../../http/buffered-response.js";
import { followSignal } from "../../../http/deadline.js";
import { networkError } from "../../../http/network-error.js";
import { VERSION } from "../../../http/version.js";
import { PROXY_FLAG, proxySettings, withSource } from "../../../profile/connection-settings.js";
import { firstSet, type Sourced } from "../../../profile/settings.js";
import { escapeText, MASK, type Redactor } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/login-first.js";
import { effectiveSettings } from "../../config/effective.js";
import type { OutStream } from "../../io/io.js";
import { textWidth, wrap } from "../../io/width.js";
import { LIST_KINDS, requireScope } from "../../listing/scope.js";
import { openListing } from "../../listing/source.js";
import { rowText } from "../../output/layout.js";
import { countText } from "../../output/value.js";
import { chooseFormat, printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import type { CheckResult, CheckState, Checks, DoctorFlags, Subject } from "./check.js";
import { buildSubject, failed, MACHINE_CHECKS, ok, runChecks, skipped, warning } from "./check.js";
import { STORE_CHECKS } from "./store-checks.js";

/** An effective setting, and the flag, variable or profile that it comes from. `null` if nothing is set. */
export interface SettingRow {
  /** The setting. */
  name: string;
  /** Its value; null if nothing is set. */
  value: string | null;
  /** The flag, variable or profile that it comes from, or `default`. */
  source: string;
}

/** The report of `doctor`, as `-o json` prints it. It contains no secret. */
export interface DoctorReport {
  /** The version of this package. */
  version: string;
  /** The version of Node. */
  node: string;
  /** The system, its architecture and its release. */
  platform: string;
  /** In the order in which they were made. */
  checks: CheckResult[];
  /** The settings that a flag, a variable or a profile sets; with `--all` those by default too. */
  settings: SettingRow[];
}

/** `doctor`: every check, and the settings; the exit code is that of the most severe failure. */
export async function runDoctor(options: DoctorFlags, context: CommandContext): Promise<number> {
  const { io, redactor, now } = context;
  if (options.url !== undefined) parseMcpUrlArgument(options.url);
  const subject = buildSubject(options, context);
  // These values are kept out of every message; the other variables with secrets are hidden in every run.
  redactor.add(io.env["AGENTAUTH_TOKEN"] ?? "");
  const settings = settingRows(subject, options, redactor).filter(({ source }) => options.all || source !== "default");
  const groups = [
    ["usage", MACHINE_CHECKS],
    ["store", STORE_CHECKS],
    ["unavailable", ONLINE_CHECKS],
  ] as const;
  const { results, exitCode } = await runChecks(groups, subject, context.signal);
  const platform = `${process.platform} ${process.arch} ${release()}`;
  const found = { version: VERSION, node: process.version, platform, checks: results, settings };
  const report = redactReport(found, redactor);
  const format = chooseFormat(options, subject.settings, io);
  if (options.jq !== undefined || !["table", "wide", "plain"].includes(format)) {
    await printObject(format, report, options, { io, now });
  } else {
    await io.stdout.write(doctorText(report, io.stdout.colors, io.stdout.isTTY ? io.stdout.columns : undefined));
  }
  const count = (state: CheckState) => results.filter((result) => result.state === state).length;
  const warnings = countText(count("warning"), "warning");
  io.say(`${results.length} checks: ${count("failed")} failed, ${warnings}, ${count("skipped")} skipped`);
  io.say(verdictOn(results, subject));
  return exitCode;
}

/** What the user can do now. */
function verdictOn(results: readonly CheckResult[], { settings: { baseUrl } }: Subject): string {
  const problems = results.filter(({ state }) => state === "failed").map(({ name }) => name);
  if (problems.length > 0) return `not ready: ${problems.join(", ")}`;
  return baseUrl === undefined ? "ready for tokens; lists need a base_url" : "ready for tokens and lists";
}

const NOT_USABLE = "(invalid)";

/** Every setting with its source, as `config list` prints it, and what else decides how requests are sent. */
function settingRows(subject: Subject, flags: DoctorFlags, redactor: Redactor): SettingRow[] {
  const { config, problems, home, env } = subject;
  const asJson = flags.json && !flags.output ? { value: "json", source: "--json" } : undefined;
  const usualOutput = { value: "table on a terminal, plain in a pipe", source: "default" };
  const settings = { ...subject.settings, output: asJson ?? subject.settings.output ?? usualOutput };
  // The URL is not shown, since it may contain a password.
  if (problems.baseUrl)
    settings.baseUrl = { value: NOT_USABLE, source: flags.baseUrl ? "--base-url" : "AGENTAUTH_BASE_URL" };
  // A profile's entries were checked when the settings file was read: only the variable can be wrong.
  const store = subject.store ?? { value: NOT_USABLE, source: "AGENTAUTH_STORE" };
  const { https, http, except } = proxySettings(withSource(flags.proxy, PROXY_FLAG), env);
  const proxyRow = (name: string, proxy: Sourced | undefined) =>
    row(name, [proxy && showProxy(proxy.value, redactor), proxy?.source ?? ""]);
  return [
    row("home", [home?.value, home?.source ?? ""]),
    ...effectiveSettings({ settings, config, home: home?.value, store, env }).map(
      ({ key, value, source = "default" }) => row(key, [value, source]),
    ),
    row("timeout", [flags.timeout?.toString(), "--timeout"], ["30", "default"]),
    row("retries", [flags.retries?.toString(), "--retries"], ["2", "default"]),
    proxyRow("https_proxy", https),
    proxyRow("http_proxy", http),
    row("no_proxy", [except?.value, except?.source ?? ""]),
    row("ca_file", [flags.caFile, "--ca-file"]),
    row("extra_ca_certs", [env["NODE_EXTRA_CA_CERTS"], "NODE_EXTRA_CA_CERTS"]),
  ];
}

/** A row of the first candidate that has a value. */
function row(name: string, ...candidates: [value: string | undefined, source: string][]): SettingRow {
  return { name, value: null, source: "default", ...firstSet(...candidates) };
}

/** A proxy without its credentials, which the redactor learns: all of the text where it is no URL. */
function showProxy(value: string, redactor: Redactor): string {
  const url = parseUrl(value.includes("://") ? value : `http://${value}`);
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    redactor.add(value);
    return NOT_USABLE;
  }
  for (const secret of [url.password, percentDecoded(url.password)]) redactor.add(secret);
  return `${url.protocol}//${url.username || url.password ? `${MASK}@` : ""}${url.host}`;
}

// Error messages quote an invalid URL such as "user:pass@host", whose password has no known position.
const QUOTED_CREDENTIALS = /"[^"]*@[^"]*"/g;

/** The report with every known and every recognized secret masked. */
export function redactReport(report: DoctorReport, redactor: Pick<Redactor, "redact">): DoctorReport {
  const clean = (text: string) => redactor.redact(text).replace(QUOTED_CREDENTIALS, `"${MASK}"`);
  return JSON.parse(JSON.stringify(report), (_key, value) => (typeof value === "string" ? clean(value) : value));
}

/** A finding is not wrapped to less than this. */
const LEAST_ROOM = 30;
const STATE_WIDTH = "warning".length;

/**
 * The report as text: the checks without a problem, the settings, and last what it warns of and what failed, which then is
 * what a terminal still shows. Each check is a line with its hint below. Everything in it is escaped.
 *
 * @param columns the width of the terminal; without it lines are not wrapped
 */
export function doctorText(
  { version, node, platform, checks, settings }: DoctorReport,
  colors: OutStream["colors"],
  columns = Number.POSITIVE_INFINITY,
): string {
  const paint = { ok: colors.green, warning: colors.yellow, failed: colors.red, skipped: colors.dim };
  const lines = (...states: CheckState[]) =>
    checks
      .filter(({ state }) => states.includes(state))
      .map(({ name, state, found, hint }) => {
        const start = [paint[state](state.padEnd(STATE_WIDTH)), name];
        const text = hint === undefined ? [found] : [found, `hint: ${hint}`];
        return besideText(start, [STATE_WIDTH, widest(checks)], text, columns).replace(
          /^( +)hint:/m,
          (_, indent) => indent + colors.cyan("hint:"),
        );
      });
  const rows = settings.map(({ name, value, source }) =>
    besideText([name], [widest(settings)], [value === null ? `(${source})` : `${value} (${source})`], columns),
  );
  const head = wrap(`agentauth ${version}, Node ${node}, ${platform}`, columns);
  const parts = [head, lines("ok", "skipped"), rows, lines("warning"), lines("failed")];
  return parts.flatMap((part) => (part.length === 0 ? [] : `${part.join("\n")}\n`)).join("\n");
}

/** Cells, and beside them paragraphs, wrapped to the width of the terminal. */
function besideText(cells: string[], widths: number[], paragraphs: string[], columns: number): string {
  const beside = widths.reduce((sum, width) => sum + width + 2, 0);
  const room = Math.max(columns - beside, LEAST_ROOM);
  const text = paragraphs.flatMap((one) => wrap(escapeText(one), room)).join(`\n${" ".repeat(beside)}`);
  return rowText([...cells, text], widths);
}

function widest(rows: readonly { name: string }[]): number {
  return Math.max(0, ...rows.map(({ name }) => textWidth(name)));
}

// The service's error codes for a request without its parameter.
const INCOMPLETE: ReadonlySet<string> = new Set(["bad_request", "required_value", "invalid_value"]);

/** `Date` has whole seconds, and the response took time to arrive. */
const HARMLESS_S = 30;
/** Beyond this, tokens appear expired or not yet valid to the servers that check them. */
const HARMFUL_S = 300;

/** The service, which needs `--online`, and the MCP server, where one is given. */
const ONLINE_CHECKS = {
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
    const kind = Object.values(LIST_KINDS).find(({ scope }) => settings[scope] !== undefined);
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
