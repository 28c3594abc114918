/** `login --hand-over`: a login for a hosted agent, which is printed once and stored nowhere. */

import { dirname, resolve } from "node:path";
import { errorMessage, usageError } from "../../../errors.js";
import type { AgentClient, AgentClientOptions } from "../../../oauth/agent.js";
import { type HandOver, handOverOptions } from "../../../oauth/hand-over.js";
import type { GrantStore } from "../../../oauth/model/grant-store.js";
import { tryLstat } from "../../../platform.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import { checkTrustedFolder, createPrivateFile } from "../../../store/private/private-file.js";
import type { TokenFlags } from "../../flags/agent.js";
import { outputError } from "../../io/write-all.js";
import { escapeJson } from "../../output/value.js";
import type { CommandContext } from "../../runtime/context.js";

/** The file that gets the login; undefined for standard output. */
function resolveTarget({ handOver }: TokenFlags, { machine }: CommandContext): string | undefined {
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
  const { handOver, handOverFormat, showSecrets, idp, grant, wait } = options;
  if (handOver === undefined) {
    const extra = handOverFormat === undefined ? showSecrets && "--show-secrets" : "--hand-over-format";
    if (extra) throw usageError(`${extra} goes with --hand-over`, "add --hand-over, or leave it out");
    return;
  }
  const other = idp === undefined ? grant && "--grant" : "--idp";
  if (other) throw usageError(`--hand-over and ${other} do not go together`, "leave out one of the two");
  const file = resolveTarget(options, context);
  const problem =
    file === undefined
      ? findOutputProblem(reason, wait !== false && context.io.stdout.isTTY && !showSecrets)
      : findTargetProblem(file);
  if (problem) throw usageError(`--hand-over ${problem[0]}`, problem[1]);
}

type Problem = readonly [what: string, hint: string];

function findOutputProblem(reason: string | undefined, isShown: boolean): Problem | undefined {
  const file = "name a new file: --hand-over=<file>";
  if (reason !== undefined)
    return [`prints on stdout, where the login would only begin, since ${reason}`, `add --no-wait, or ${file}`];
  return isShown ? ["would print secrets to the terminal", `${file}, or add --show-secrets`] : undefined;
}

function findTargetProblem(file: string): Problem | undefined {
  const folder = dirname(file);
  if (!checkTrustedFolder(folder)) return [`has no folder ${quote(folder)}`, "name a file in a folder that exists"];
  const isTaken = tryLstat(file) !== undefined;
  return isTaken ? [`overwrites nothing, and ${quote(file)} exists`, "name another file, or remove it"] : undefined;
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
  const { handOver, handOverFormat: format, showSecrets } = options;
  if (handOver === undefined) return undefined;
  const file = resolveTarget(options, context);
  const target = file === undefined ? "--hand-over" : `--hand-over=${file}`;
  return [target, ...(format ? ["--hand-over-format", format] : []), ...(showSecrets ? ["--show-secrets"] : [])];
}

/**
 * Prints a login, or writes it into a new file. One that cannot be written is revoked.
 *
 * @throws `AgentAuthError` `store_failed`
 */
export async function printHandOver(login: HandOver, options: TokenFlags, context: CommandContext): Promise<void> {
  const { io, redactor } = context;
  const file = resolveTarget(options, context);
  const text = `${escapeJson(JSON.stringify(login.reveal(options.handOverFormat)))}\n`;
  try {
    if (file === undefined) await io.stdout.write(text);
    else createPrivateFile(file, text);
  } catch (cause) {
    const { revoked, error } = await login.revoke();
    const why = error === undefined ? "its issuer has no revocation endpoint" : redactor.redact(errorMessage(error));
    const end = revoked ? "its tokens were revoked" : `its tokens were not revoked (${why})`;
    throw outputError(`the login was not handed over, and ${end}`, cause as Error, "log in again with another target");
  }
  const { server, issuer, clientId, expiresAt, refreshable } = login;
  const until = expiresAt === undefined ? "" : `, the access token expires at ${expiresAt.toISOString()}`;
  const lasting = refreshable ? "" : "; it comes without a refresh token: hand over another login then";
  const whose = `issuer ${escapeText(issuer)}, client ${escapeText(clientId)}`;
  const revoke = `agentauth logout --hand-over ${shellWord(file ?? "-")}`;
  io.say(`handed over a login at ${escapeText(server)} (${whose})${until}${lasting}; to revoke it: ${revoke}`);
}
