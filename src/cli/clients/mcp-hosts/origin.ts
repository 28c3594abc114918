import { basename } from "node:path";
import { isMap } from "./language.js";

/** What an entry of a host's settings is for. */
export interface EntryOrigin {
  /** The MCP server, where the entry names one. */
  readonly url: string | undefined;
  /** Whether the entry uses the server through agentauth. */
  readonly isByAgentauth: boolean;
}

const URL_FIELDS = ["url", "serverUrl", "httpUrl", "uri"];

/** What an entry is for, in the shape of any host. */
export function originOf(entry: unknown): EntryOrigin {
  if (!isMap(entry)) return { url: undefined, isByAgentauth: false };
  const words = [entry["command"] ?? entry["cmd"], entry["args"]].flat().filter((word) => typeof word === "string");
  // The command may have any name, which --command sets, or be Node and our script, or npx.
  const verb = [1, 2, 3, 5].find((at) => words[at] === "mcp" && words[at + 1] === "proxy");
  const proxied = verb === undefined ? undefined : words[verb + 2];
  if (proxied !== undefined && URL.canParse(proxied)) return { url: proxied, isByAgentauth: true };
  const url = URL_FIELDS.map((field) => entry[field]).find((value) => typeof value === "string");
  return { url, isByAgentauth: url !== undefined && isOurHelper(entry["headersHelper"]) };
}

function isOurHelper(helper: unknown): boolean {
  if (typeof helper !== "string") return false;
  const [command = ""] = helper.split(" ");
  return / token \S+ --format headers-json/.test(helper) || basename(command) === "agentauth";
}
