// The order of the pages. The build fails for a page of docs/ that is in no section, and for a section of more
// than eight entries.
import { readdirSync } from "node:fs";

export const SECTIONS = [
  section("Start", [
    ["Tokens", "getting-started"],
    ["Lists", "getting-started-lists"],
    ["How it works", "how-it-works"],
    ["Comparison", "comparison"],
    ["Moving from other clients", "moving"],
  ]),
  section("Lists", [
    ["Lists and output", "lists"],
    ["Commands: lists", "cli-lists"],
    ["The SDK: lists", "sdk-lists"],
  ]),
  section("Tokens for users", [
    ["Scripts", "tokens"],
    ["AI agents", "agents"],
    ["MCP hosts", "mcp-hosts"],
    ["The MCP proxy", "mcp-proxy"],
    ["The official MCP SDKs", "mcp-sdk"],
    ["Agents in sandboxes", "broker"],
    ["Company login", "company-login"],
    ["Register a client yourself", "register-a-client"],
  ]),
  section("Tokens without a user", [
    ["CI and cron", "tokens-ci"],
    ["Machine grants", "grants"],
    ["Workloads without a secret", "workloads"],
    ["DPoP and exchange", "dpop"],
  ]),
  section("Platforms and fleets", [
    ["Hosted agents", "hosted-agents"],
    ["Web apps", "web-login"],
    ["Logins of many users", "many-users"],
    ["Many machines", "fleet"],
    ["Many machines: operation", "fleet-operation"],
    ["Many machines: failures", "fleet-failures"],
    ["Events", "events"],
  ]),
  section("Servers", [
    ["Resource server", "resource-server"],
    ["Which tokens it accepts", "resource-server-tokens"],
    ["Real servers", "servers"],
    ["Issuers that differ", "issuers"],
    ["The sandbox", "sandbox"],
    ["Sandbox: options", "sandbox-options"],
    ["Sandbox: faults", "sandbox-faults"],
    ["Testing your own code", "testing"],
  ]),
  section("Reference", [
    ["Settings, exit codes", "settings"],
    ["Troubleshooting", "troubleshooting"],
    ["Platforms", "platforms"],
    ["Glossary", "glossary"],
    ["Decisions", "decisions"],
    group("Commands", [
      ["Commands and flags", "cli"],
      ["Commands: tokens", "cli-tokens"],
      ["Commands: settings", "cli-settings"],
      ["Commands: sandbox", "cli-sandbox"],
      ["Commands: help", "cli-help"],
    ]),
    group("The SDK", [
      ["Entry points", "sdk"],
      ["The SDK: tokens", "sdk-tokens"],
      ["The SDK: errors", "sdk-errors"],
    ]),
    group("Promises", [
      ["Security", "security"],
      ["How each promise is kept", "security-details"],
      ["Hostile inputs", "security-table"],
      ["Reliability", "reliability"],
      ["Reliability: design", "reliability-design"],
      ["Reliability: measurements", "reliability-measurements"],
      ["Performance", "performance"],
      ["Conformance", "conformance"],
    ]),
  ]),
];

export const NAVIGATION = [
  { text: "Getting started", link: "/getting-started" },
  { text: "Commands", link: "/cli" },
  // The pages of typedoc are no pages of VitePress: the browser loads them.
  { text: "API", link: "/api/index.html", target: "_self" },
];

const listed = linksOf(SECTIONS).map((link) => `${link.slice(1)}.md`);
const pages = readdirSync(new URL("..", import.meta.url)).filter((name) => name.endsWith(".md"));
const unlisted = pages.filter((name) => name !== "index.md" && !listed.includes(name));
if (unlisted.length > 0) throw new Error(`in no section of docs/.vitepress/pages.mjs: ${unlisted.join(", ")}`);

/** A heading, open, with at most eight entries: readers see a group at a glance. */
function section(text, entries) {
  if (entries.length > 8) throw new Error(`${text} has ${entries.length} entries: at most 8`);
  return { text, items: entries.map((entry) => (Array.isArray(entry) ? page(...entry) : entry)) };
}

function group(text, entries) {
  return { ...section(text, entries), collapsed: true };
}

function page(text, name) {
  return { text, link: `/${name}` };
}

function linksOf(items) {
  return items.flatMap(({ link, items: below = [] }) => [...(link === undefined ? [] : [link]), ...linksOf(below)]);
}
