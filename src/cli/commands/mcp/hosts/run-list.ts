import { existsSync } from "node:fs";
import { isAgentAuthError } from "../../../../errors.js";
import { HOST_SCOPES, type HostScope } from "../../../clients/mcp-hosts/host.js";
import { originOf } from "../../../clients/mcp-hosts/origin.js";
import { filesOf } from "../../../clients/mcp-hosts/places.js";
import { MCP_HOSTS } from "../../../clients/mcp-hosts.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { OutputFlags } from "../../../flags/output.js";
import { formatOf } from "../../../output/chosen-format.js";
import type { ColumnSet } from "../../../output/columns.js";
import { createWriter } from "../../../output/writer.js";
import type { CommandContext } from "../../../runtime/context.js";
import { EXIT_CODES } from "../../../runtime/exit-codes.js";
import { printableUrl } from "../entry.js";
import { machineOf, readSettings } from "./settings.js";

/** Options of `mcp list`. */
export type McpListFlags = GlobalFlags & OutputFlags;

/** A server in the settings of an MCP host. */
interface HostServer {
  /** The host. */
  host: string;
  /** Whether the settings are those of the user or of the project. */
  scope: HostScope;
  /** The name of the server in the settings. */
  name: string;
  /** The address of the server, a part that may be a secret masked; null for a server that the host starts by itself. */
  url: string | null;
  /** Whether the host uses the server through agentauth. */
  by_agentauth: boolean;
  /** The file. */
  file: string;
}

const COLUMNS = [
  { path: "host", header: "HOST" },
  { path: "scope", header: "SCOPE" },
  { path: "name", header: "NAME", kind: "name" },
  { path: "url", header: "URL" },
  { path: "by_agentauth", header: "AGENTAUTH", kind: "bool" },
] as const;
const SERVERS: ColumnSet = {
  columns: COLUMNS,
  wideColumns: [...COLUMNS, { path: "file", header: "FILE" }],
  fields: ["host", "scope", "name", "url", "by_agentauth", "file"],
};

/** `mcp list`: the servers of every host that has settings here; exit code 7 if a file cannot be read. */
export async function runMcpList(options: McpListFlags, context: CommandContext): Promise<number> {
  const { servers, isComplete } = await readAll(context);
  const format = formatOf(options, context.settings(), context.io);
  const writer = createWriter(format, { ...SERVERS, jq: options.jq, now: context.now }, context.io);
  await writer.write(format === "id" ? servers.map((server) => ({ ...server, id: server.name })) : servers);
  await writer.end();
  if (servers.length === 0) context.io.say("no MCP host has a server in its settings here");
  return isComplete ? EXIT_CODES.ok : EXIT_CODES.partial;
}

async function readAll(context: CommandContext): Promise<{ servers: HostServer[]; isComplete: boolean }> {
  const machine = machineOf(context);
  const all: HostServer[] = [];
  let isComplete = true;
  for (const [name, host] of Object.entries(MCP_HOSTS)) {
    // In the user's own folder, the files of the project are those of the user.
    const seen = new Set<string>();
    for (const scope of HOST_SCOPES) {
      for (const file of filesOf(host, scope, machine).filter((path) => existsSync(path) && !seen.has(path))) {
        seen.add(file);
        try {
          const { servers } = await readSettings(host, file, scope, machine);
          all.push(
            ...Object.entries(servers).map(([own, entry]) => rowOf({ host: name, scope, name: own, file }, entry)),
          );
        } catch (error) {
          if (!isAgentAuthError(error)) throw error;
          isComplete = false;
          context.io.warn(error.message);
        }
      }
    }
  }
  return { servers: all, isComplete };
}

function rowOf(place: Pick<HostServer, "host" | "scope" | "name" | "file">, entry: unknown): HostServer {
  const { url, isByAgentauth } = originOf(entry);
  const { file, ...rest } = place;
  return { ...rest, url: url === undefined ? null : printableUrl(url), by_agentauth: isByAgentauth, file };
}
