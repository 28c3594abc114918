import { join } from "node:path";
import type { AgentClient } from "../../../oauth/agent.js";
import { withVariable } from "../../../platform/environment.js";
import { checkHandOver } from "../../clients/bound-token.js";
import { tokenOf } from "../../clients/login-first.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { outputError } from "../../io/write-all.js";
import type { CommandContext, LentProcess } from "../../runtime/context.js";
import { type ChildResult, runChild } from "./child.js";
import { commandOf } from "./command-words.js";
import { type TokenEncodings, tokenEncodings } from "./encodings.js";
import type { ExecFlags } from "./options.js";
import { isStartFailure, reportStartFailure } from "./start-failure.js";
import { DEFAULT_TARGET } from "./target.js";
import { keepTokenFileFresh, type RefreshedTokenFile } from "./token-file.js";

type Token = Awaited<ReturnType<AgentClient["token"]>>;

/** `exec`: runs a command with the token in its environment, and returns the command's exit code. */
export async function runExec(options: ExecFlags, context: CommandContext): Promise<number> {
  const command = commandOf(options, context.argv);
  const url = parseMcpUrlArgument(options.url);
  const agent = await context.agent();
  const { scope, minTtl } = options;
  const getToken = (more: { signal: AbortSignal; login?: false }) => agent.token(url, { scope, minTtl, ...more });
  const first = await tokenOf(agent, url, { scope, minTtl, signal: context.signal });
  context.signal.throwIfAborted();
  checkHandOver(first, "exec");
  const forms = tokenEncodings();
  remember(first.value, forms, context);
  const own = context.lend();
  try {
    return await runWith(first, (signal) => getToken({ signal, login: false }), {
      options,
      command,
      forms,
      own,
      context,
    });
  } finally {
    own.giveBack();
  }
}

interface Run {
  options: ExecFlags;
  command: readonly string[];
  forms: TokenEncodings;
  own: LentProcess;
  context: CommandContext;
}

async function runWith(first: Token, getToken: (signal: AbortSignal) => Promise<Token>, run: Run): Promise<number> {
  const { options, command, forms, own, context } = run;
  const { kind, name } = options.as ?? DEFAULT_TARGET;
  let file: RefreshedTokenFile | undefined;
  const handOver = () => {
    file = kind === "file" ? createTokenFile(first, getToken, run) : undefined;
    return withVariable(own.env, name, file?.path ?? first.value);
  };
  let result: ChildResult;
  try {
    result = await runChild({
      command,
      env: handOver,
      masked: { stdout: options.mask ?? !context.io.stdout.isTTY, stderr: options.mask ?? !context.io.stderr.isTTY },
      secrets: forms.all,
      onTerminal: context.io.stdin.isTTY || context.io.stdout.isTTY || context.io.stderr.isTTY,
      onSignalFailure: ({ code, message }) =>
        context.io.warn(`the command could not be sent a signal: ${code ?? message}`),
      own,
      signals: context.signals,
    });
  } catch (error) {
    if (!isStartFailure(error)) throw error;
    return await reportStartFailure(command[0] ?? "", error, context);
  } finally {
    await file?.stop();
  }
  const { exitCode, lost, isStuck } = result;
  if (isStuck) {
    await context.pendingSaves.settled();
    own.exit(exitCode);
  }
  if (lost && exitCode === 0) throw outputError("the command's output cannot be passed on", lost);
  return exitCode;
}

function createTokenFile(
  first: Token,
  getToken: (signal: AbortSignal) => Promise<Token>,
  { options, forms, context }: Run,
): RefreshedTokenFile {
  return keepTokenFileFresh({
    folder: join(context.home(), "run"),
    first,
    getToken,
    onToken: (token) => remember(token, forms, context),
    onFailure: (error) => {
      const reason = context.redactor.redact(error instanceof Error ? error.message : String(error));
      context.io.warn(`the token file cannot be refreshed; trying again: ${reason}`);
    },
    minTtl: options.minTtl ?? 60,
    now: context.now,
    pause: (ms, signal) => context.clock.sleep(ms, signal),
  });
}

/** Registers the token before the command gets it, so that its output is masked. */
function remember(token: string, forms: TokenEncodings, { redactor }: CommandContext): void {
  redactor.add(token);
  forms.add(token);
}
