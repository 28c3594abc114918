// The order of the pages. The build fails for a page of docs/ that is in no section.
import { readdirSync } from "node:fs";

export const SECTIONS = [
  section("Begin", [
    ["Getting started: tokens", "getting-started"],
    ["Getting started: lists", "getting-started-lists"],
    ["Comparison", "comparison"],
    ["Moving from other clients", "moving"],
  ]),
  section("Tokens", [
    ["Tokens in scripts", "tokens"],
    ["Tokens in CI and cron", "tokens-ci"],
    ["The official MCP SDKs", "mcp-sdk"],
    ["MCP hosts", "mcp-hosts"],
    ["The MCP proxy", "mcp-proxy"],
    ["AI agents", "agents"],
    ["Agents in sandboxes", "broker"],
    ["Company login", "company-login"],
    ["Machine grants", "grants"],
    ["Workloads without a secret", "workloads"],
    ["Register a client yourself", "register-a-client"],
    ["Issuers that differ", "issuers"],
    ["DPoP and exchange", "dpop"],
    ["Web apps", "web-login"],
    ["Many machines", "fleet"],
    ["Many machines: operation", "fleet-operation"],
    ["Many machines: failures", "fleet-failures"],
    ["Logins of many users", "many-users"],
    ["Events", "events"],
  ]),
  section("Lists", [["Lists and output", "lists"]]),
  section("Servers", [
    ["Resource server", "resource-server"],
    ["Which tokens it accepts", "resource-server-tokens"],
    ["Real servers", "servers"],
  ]),
  section("Tests", [
    ["The sandbox", "sandbox"],
    ["Sandbox: options", "sandbox-options"],
    ["Sandbox: faults", "sandbox-faults"],
    ["Testing your own code", "testing"],
  ]),
  section("Reference", [
    ["Commands and flags", "cli"],
    ["Commands: tokens", "cli-tokens"],
    ["Commands: lists", "cli-lists"],
    ["Commands: settings", "cli-settings"],
    ["Commands: sandbox", "cli-sandbox"],
    ["Commands: help", "cli-help"],
    ["Settings, exit codes", "settings"],
    ["The SDK", "sdk"],
    ["The SDK: tokens", "sdk-tokens"],
    ["The SDK: lists", "sdk-lists"],
    ["The SDK: errors", "sdk-errors"],
    ["Troubleshooting", "troubleshooting"],
    ["Platforms", "platforms"],
    ["Glossary", "glossary"],
  ]),
  section("Promises", [
    ["Security", "security"],
    ["How each promise is kept", "security-details"],
    ["Hostile inputs", "security-table"],
    ["Reliability", "reliability"],
    ["Reliability: design", "reliability-design"],
    ["Reliability: measurements", "reliability-measurements"],
    ["Performance", "performance"],
    ["Conformance", "conformance"],
    ["How it works", "how-it-works"],
    ["Decisions", "decisions"],
  ]),
];

export const NAVIGATION = [
  { text: "Getting started", link: "/getting-started" },
  { text: "Commands", link: "/cli" },
  // The pages of typedoc are no pages of VitePress: the browser loads them.
  { text: "API", link: "/api/index.html", target: "_self" },
];

const listed = SECTIONS.flatMap(({ items }) => items.map(({ link }) => `${link.slice(1)}.md`));
const pages = readdirSync(new URL("..", import.meta.url)).filter((name) => name.endsWith(".md"));
const unlisted = pages.filter((name) => name !== "index.md" && !listed.includes(name));
if (unlisted.length > 0) throw new Error(`in no section of docs/.vitepress/pages.mjs: ${unlisted.join(", ")}`);

function section(text, items) {
  return { text, items: items.map(([title, name]) => ({ text: title, link: `/${name}` })) };
}
