import { type Broker, type BrokerEvent, type BrokerOptions, createBroker } from "../../broker/broker.js";
import { type BrokerClient, type BrokerGrant, type BrokerPolicy, checkPolicy } from "../../broker/policy.js";
import { usageError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { LoginRemedy } from "../../remedy.js";
import type { CommandContext, ContextFlags } from "../runtime/context.js";
import { loginCommand } from "../runtime/hints.js";

/** The client of a broker that is described by flags. */
const ONLY_CLIENT = "default";
/** A needed login is reported once in this time. */
const REMIND_MS = 60_000;

/**
 * A broker that uses the logins of the profile, and never asks the user for one: it prints the command of a login that is
 * needed. It logs each request with `-v`.
 */
export async function buildBroker(
  policy: BrokerPolicy,
  flags: ContextFlags,
  context: CommandContext,
  onLogin: (name: string, grant: BrokerGrant, command: string) => void = () => {},
): Promise<Broker> {
  const { io } = context;
  const unattended = context.with({ flags, io: { ...io, stdin: { ...io.stdin, isTTY: false } } });
  const use = { login: "never", idleTimeoutMs: 0 } as const;
  return createBroker(await unattended.agent(use), policy, {
    agentFor: async (_name, { account }) =>
      (account === undefined ? unattended : unattended.with({ flags: { ...flags, accountHint: account } })).agent(use),
    onRequest: (event) => {
      io.verbose(formatEvent(event));
      context.audit()?.(event);
    },
    onLoginRequired: loginReporter(context, onLogin),
  });
}

function loginReporter(
  context: CommandContext,
  onLogin: (name: string, grant: BrokerGrant, command: string) => void,
): NonNullable<BrokerOptions["onLoginRequired"]> {
  const { io, withHint = (error) => error } = context;
  const reported = new Map<string, number>();
  return (name, grant, error) => {
    const key = `${name} ${error?.code}`;
    if (performance.now() - (reported.get(key) ?? Number.NEGATIVE_INFINITY) < REMIND_MS) return;
    reported.set(key, performance.now());
    const { server, account, scope } = grant;
    const remedy = error?.remedy ?? { action: "login", server, account, scope };
    if (error !== undefined && remedy.action !== "login") {
      const { message, hint } = withHint(error);
      io.warn(`${name} gets no token: ${message}${hint === undefined ? "" : `; ${hint}`}`);
      return;
    }
    const command = loginCommand(remedy as LoginRemedy);
    io.warn(`${name} needs a login: ${command}`);
    onLogin(name, grant, command);
  };
}

function formatEvent({ client, name, method, tool, status, refused, durationMs }: BrokerEvent): string {
  const what = [name ?? "?", method, ...(tool === undefined ? [] : [quote(tool, 80)])].join(" ");
  return `${client}: ${what}: ${status}${refused === undefined ? "" : ` (${refused})`} in ${durationMs.toFixed(0)} ms`;
}

/** The policy that flags describe, for one client. @throws `AgentAuthError` `usage` */
export function policyOfFlags(grants: readonly string[], client: BrokerClient, flag: string): BrokerPolicy {
  const read = grants.map((text) => readGrant(text, flag));
  const [again] = read.find(([name], nth) => read.findIndex(([one]) => one === name) < nth) ?? [];
  if (again !== undefined) throw usageError(`${flag} names ${quote(again)} twice`, "give each server its own name");
  return checkPolicy({ grants: Object.fromEntries(read), clients: { [ONLY_CLIENT]: client } }, flag);
}

/** The keys of a policy behind the URL of a grant, with the field that each one sets. */
const KEYS = {
  tools: "tools",
  "hide-tools": "hideTools",
  methods: "methods",
  paths: "paths",
  headers: "headers",
  scope: "scope",
  account: "account",
  rpm: "requestsPerMinute",
  until: "until",
} as const;

/** `name=url[,key=value]…`, where a key of a list may come several times. */
function readGrant(text: string, flag: string): [string, Record<string, unknown>] {
  const [, name, rest = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  if (name === undefined)
    throw usageError(`${flag} ${quote(text)} is not <name>=<url>`, `${flag} crm=https://crm.example/mcp`);
  const [server = "", ...pairs] = rest.split(/,(?=[a-z-]+=)/);
  const fields: Record<string, unknown> = { server };
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    const [key, value] = [pair.slice(0, at), pair.slice(at + 1)];
    // A misspelt key must not open what it was to close.
    if (!Object.hasOwn(KEYS, key))
      throw usageError(`${flag} has the unknown key ${quote(key)}`, `its keys are ${Object.keys(KEYS).join(", ")}`);
    const field = KEYS[key as keyof typeof KEYS];
    if (["scope", "account", "until"].includes(field)) fields[field] = value;
    else if (field === "requestsPerMinute") fields[field] = /^\d+$/.test(value) ? Number(value) : value;
    else fields[field] = [...((fields[field] as string[] | undefined) ?? []), value];
  }
  return [name, fields];
}
