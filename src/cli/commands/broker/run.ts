import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import type { Broker } from "../../../broker/broker.js";
import { type BrokerListener, listen } from "../../../broker/listen.js";
import { type BrokerGrant, type BrokerPolicy, checkPolicy } from "../../../broker/policy.js";
import { AgentAuthError, errorMessage, usageError } from "../../../errors.js";
import { parseStrictJson } from "../../../http/strict-json.js";
import { writeSecretFile } from "../../../profile/secrets.js";
import { quote } from "../../../redact.js";
import { checkOwner } from "../../../store/private/private-file.js";
import { buildBroker, policyOfFlags } from "../../clients/broker.js";
import type { AgentFlags } from "../../flags/agent.js";
import { countText } from "../../output/value.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

export interface BrokerFlags extends Omit<AgentFlags, "output" | "grant"> {
  grant?: string[];
  listen?: string;
  config?: string;
  check?: boolean;
  readyFile?: string;
  onLoginRequired?: string;
}

/** `broker`: passes requests on until it is ended. */
export async function runBroker(options: BrokerFlags, context: CommandContext): Promise<number> {
  const { io, signals } = context;
  const policy = readPolicy(options);
  if (options.check) {
    io.say(
      `the policy is valid: ${countText(Object.keys(policy.grants).length, "grant")}, ${countText(Object.keys(policy.clients).length, "client")}`,
    );
    return EXIT_CODES.ok;
  }
  checkReady(policy, options);
  const { grant: _ofBroker, ...flags } = options;
  const broker = await buildBroker(policy, flags, context, loginCommandRunner(options, context));
  const listening = await listen(broker, { sockets: inheritedSockets(process.env) });
  // The signals are ours from here on: SIGHUP ends no broker that has a file to read again.
  const own = context.acquireProcess();
  const removals: (() => void)[] = [];
  try {
    const ended = new Promise<number>((resolve) => {
      removals.push(
        signals.on("SIGTERM", () => resolve(EXIT_CODES.ok)),
        signals.on("SIGINT", () => resolve(130)),
        signals.on("SIGHUP", () => reload(broker, options, context)),
      );
    });
    announce(listening.listeners, options, context);
    return await ended;
  } finally {
    await listening.close();
    for (const remove of removals) remove();
    own.release();
  }
}

/** The first file descriptor that a parent passes (sd_listen_fds(3)). */
const FIRST_FD = 3;

/** The sockets that the parent has passed to this process, by name and by number. No program that it starts gets them. */
function inheritedSockets(env: NodeJS.ProcessEnv): Record<string, number> {
  const { LISTEN_PID: pid, LISTEN_FDS: count, LISTEN_FDNAMES: fdNames = "" } = env;
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete env[name];
  if (pid !== String(process.pid)) return {};
  const names = fdNames.split(":");
  const fds = Array.from({ length: Math.min(Number(count) || 0, 256) }, (_, nth) => FIRST_FD + nth);
  return Object.fromEntries(fds.flatMap((fd, nth) => [[String(nth), fd], ...(names[nth] ? [[names[nth], fd]] : [])]));
}

function reload(broker: Broker, options: BrokerFlags, { io }: CommandContext): void {
  if (options.config === undefined) return;
  try {
    const next = readPolicy(options);
    const addresses = ({ clients }: BrokerPolicy) =>
      JSON.stringify(Object.entries(clients).map(([name, { listen: address }]) => [name, address]));
    if (addresses(next) !== addresses(broker.policy))
      throw new Error("other clients or addresses need a new start of the broker");
    broker.reload(next);
    io.say(`read ${quote(options.config)} again: ${countText(Object.keys(next.grants).length, "grant")}`);
  } catch (error) {
    io.warn(`the old policy stays in force: ${errorMessage(error)}`);
  }
}

function announce(listeners: readonly BrokerListener[], options: BrokerFlags, { io }: CommandContext): void {
  const text = `${JSON.stringify({ listeners })}\n`;
  if (options.readyFile !== undefined) writeSecretFile(options.readyFile, text);
  for (const { client, socket } of listeners)
    io.say(`broker ready for ${client}: ${socket ?? "on TCP, at the address that was written"}`);
}

/** The address on TCP is a secret, which is printed nowhere else. */
function checkReady({ clients }: BrokerPolicy, { readyFile }: BrokerFlags): void {
  const onTcp = Object.values(clients).find(({ listen: address }) => !/^(?:unix|pipe|systemd):/.test(address));
  if (onTcp === undefined || readyFile !== undefined) return;
  throw usageError(
    `${quote(onTcp.listen)} has an address with a secret, which is printed nowhere else`,
    "add --ready-file <file>",
  );
}

function loginCommandRunner({ onLoginRequired: command }: BrokerFlags, { io }: CommandContext) {
  return (name: string, { server }: BrokerGrant, login: string) => {
    if (command === undefined) return;
    const details = { AGENTAUTH_BROKER_NAME: name, AGENTAUTH_BROKER_SERVER: server, AGENTAUTH_BROKER_LOGIN: login };
    const env = { ...process.env, ...details };
    spawn(command, { shell: true, env, stdio: "ignore" }).on("error", (error) => {
      io.warn(`--on-login-required failed: ${error.message}`);
    });
  };
}

/** @throws `AgentAuthError` `usage` */
function readPolicy({ config, grant, listen: address }: BrokerFlags): BrokerPolicy {
  if (config === undefined) {
    if (address === undefined || grant === undefined)
      throw usageError("broker needs --listen and --grant, or --config", "agentauth broker --help");
    return policyOfFlags(grant, { listen: address }, "--grant");
  }
  const other = grant ? "--grant" : address ? "--listen" : undefined;
  if (other !== undefined) throw usageError(`--config and ${other} do not go together`, `put ${other} into the file`);
  const from = `the file ${quote(config)}`;
  try {
    // Who can write it, can let any program use the logins.
    checkOwner(from, config, statSync(config), "go-w");
    return checkPolicy(parseStrictJson(readFileSync(config, "utf8")), from);
  } catch (error) {
    if (error instanceof AgentAuthError) throw error;
    throw usageError(`${from} cannot be read: ${errorMessage(error)}`, "agentauth schema broker-policy", error);
  }
}
