/** `login --hand-over`: a login for a hosted agent, which is printed once and stored nowhere. */

import { dirname, resolve } from "node:path";
import { type AgentAuthError, messageOf, usageError } from "../../../errors.js";
import type { AgentClient, AgentClientOptions } from "../../../oauth/agent.js";
import { type HandOver, handOverOptions } from "../../../oauth/hand-over.js";
import type { GrantStore } from "../../../oauth/model/grant-store.js";
import { linkStatOf } from "../../../platform/files.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import { checkTrustedFolder, createPrivateFile } from "../../../store/private/private-file.js";
import type { TokenFlags } from "../../flags/agent.js";
import { outputError } from "../../io/write-all.js";
import { escapeJson } from "../../output/safe-json.js";
import type { CommandContext } from "../../runtime/context.js";

/** The file that gets the login; undefined for standard output. */
function targetOf({ handOver }: TokenFlags, { machine }: CommandContext): string | undefined {
  if (typeof handOver !== "string" || handOver === "-") return undefined;
  return resolve(machine?.folder ?? process.cwd(), handOver);
}

/**
 * Checks before the login that it can be printed.
 *
 * @param reason why the login only begins without a flag that says so
 * @throws `AgentAuthError` `usage`, `store_failed` for a folder in which others can replace the file
 */
export function checkHandOverFlags(options: TokenFlags, context: CommandContext, reason: string | undefined): void {
  const { handOver, handOverFormat, showSecrets, idp, grant } = options;
  if (handOver === undefined) {
    const extra = handOverFormat === undefined ? showSecrets && "--show-secrets" : "--hand-over-format";
    if (extra) throw usageError(`${extra} goes with --hand-over`, "add --hand-over, or leave it out");
    return;
  }
  const other = idp === undefined ? grant && "--grant" : "--idp";
  if (other) throw usageError(`--hand-over and ${other} do not go together`, "leave out one of the two");
  const file = targetOf(options, context);
  if (file !== undefined) checkTarget(file);
  else checkOutput(options, context, reason);
}

function checkOutput({ wait, showSecrets }: TokenFlags, { io }: CommandContext, reason: string | undefined): void {
  if (reason !== undefined)
    throw usageError(
      `--hand-over prints on standard output, where the login would only begin, since ${reason}`,
      "add --no-wait and run the command that it prints, or name a file: --hand-over=<file>",
    );
  if (wait !== false && io.stdout.isTTY && !showSecrets)
    throw usageError(
      "--hand-over would print secrets to the terminal",
      "name a new file (--hand-over=<file>), pipe the output into a program, or add --show-secrets",
    );
}

function checkTarget(file: string): void {
  if (!checkTrustedFolder(dirname(file)))
    throw usageError(`--hand-over: there is no folder ${quote(dirname(file))}`, "name a file in a folder that exists");
  if (linkStatOf(file) !== undefined)
    throw usageError(
      `--hand-over: ${quote(file)} exists, and nothing is overwritten`,
      "name another file, or remove it",
    );
}

/** The client of a login; for one that is handed over, with the store that gets it in place of the profile's. */
export async function openLoginClient(
  { handOver }: TokenFlags,
  context: CommandContext,
): Promise<{ agent: AgentClient; store: GrantStore | undefined }> {
  let store: GrantStore | undefined;
  const adapt = (options: AgentClientOptions) => {
    const own = handOverOptions(options);
    ({ store } = own);
    return own;
  };
  const agent = await context.agent({ login: "always", ...(handOver !== undefined && { adapt }) });
  return { agent, store };
}

/** The flags that the second step of a login repeats; undefined for one that is stored. */
export function handOverWords(options: TokenFlags, context: CommandContext): string[] | undefined {
  if (options.handOver === undefined) return undefined;
  const file = targetOf(options, context);
  return [
    file === undefined ? "--hand-over" : `--hand-over=${file}`,
    ...(options.handOverFormat === undefined ? [] : ["--hand-over-format", options.handOverFormat]),
    ...(options.showSecrets ? ["--show-secrets"] : []),
  ];
}

/**
 * Prints a login, or writes it into a new file. One that cannot be written is revoked.
 *
 * @throws `AgentAuthError` `store_failed`
 */
export async function printHandOver(login: HandOver, options: TokenFlags, context: CommandContext): Promise<void> {
  const { io, redactor } = context;
  const file = targetOf(options, context);
  const text = `${escapeJson(JSON.stringify(login.reveal(options.handOverFormat)))}\n`;
  try {
    if (file === undefined) await io.stdout.write(text);
    else createPrivateFile(file, text);
  } catch (error) {
    throw await revokeUnprinted(login, error as Error, redactor);
  }
  const { server, issuer, clientId, expiresAt, refreshable } = login;
  const until = expiresAt === undefined ? "" : `, the access token expires at ${expiresAt.toISOString()}`;
  const lasting = refreshable ? "" : "; it comes without a refresh token: hand over another login then";
  io.say(
    `handed over a login at ${escapeText(server)} (issuer ${escapeText(issuer)}, client ${escapeText(clientId)})${until}${lasting}`,
  );
  io.say(
    `${file === undefined ? "pass it to this to revoke it" : "to revoke it"}: agentauth logout --hand-over ${shellWord(file ?? "-")}`,
  );
}

async function revokeUnprinted(
  login: HandOver,
  cause: Error,
  redactor: CommandContext["redactor"],
): Promise<AgentAuthError> {
  const { revoked, error } = await login.revoke();
  const why = error === undefined ? "its issuer has no revocation endpoint" : redactor.redact(messageOf(error));
  const end = revoked ? "its tokens were revoked" : `its tokens were not revoked (${why})`;
  return outputError(`the login was not handed over, and ${end}`, cause, "log in again with another target");
}
