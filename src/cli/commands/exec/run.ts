import { join } from "node:path";
import { AgentAuthError } from "../../../errors.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { createAgentClient } from "../../clients/agent.js";
import { checkHandOver } from "../../clients/bound-token.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { homeOf } from "../../config/home.js";
import type { CommandContext, LentProcess } from "../../runtime/context.js";
import { pendingSaves } from "../../runtime/pending-saves.js";
import { type ChildResult, runChild } from "./child.js";
import { commandOf } from "./command-words.js";
import { type TokenEncodings, tokenEncodings } from "./encodings.js";
import type { ExecFlags } from "./options.js";
import { isStartFailure, tellStartFailure } from "./start-failure.js";
import { DEFAULT_TARGET } from "./target.js";
import { keepTokenFileFresh, type RefreshedTokenFile } from "./token-file.js";

type Token = Awaited<ReturnType<AgentClient["token"]>>;

/** `exec`: runs a command that finds the token in its environment, and gives the command's exit code. */
export async function runExec(options: ExecFlags, deps: CommandContext): Promise<number> {
  const command = commandOf(options, deps.argv);
  const url = parseMcpUrlArgument(options.url);
  const agent = await createAgentClient(options, deps, "when-present");
  const { scope, minTtl } = options;
  const ask = (more: { signal: AbortSignal; login?: false }) => agent.token(url, { scope, minTtl, ...more });
  const first = await ask({ signal: deps.signal });
  deps.signal.throwIfAborted();
  checkHandOver(first, "exec");
  const forms = tokenEncodings();
  remember(first.value, forms, deps);
  const own = deps.lend();
  try {
    return await runWith(first, (signal) => ask({ signal, login: false }), { options, command, forms, own, deps });
  } finally {
    own.giveBack();
  }
}

interface Run {
  options: ExecFlags;
  command: readonly string[];
  forms: TokenEncodings;
  own: LentProcess;
  deps: CommandContext;
}

async function runWith(first: Token, ask: (signal: AbortSignal) => Promise<Token>, run: Run): Promise<number> {
  const { options, command, forms, own, deps } = run;
  const { kind, name } = options.as ?? DEFAULT_TARGET;
  let file: RefreshedTokenFile | undefined;
  const handOver = () => {
    file = kind === "file" ? keepFile(first, ask, run) : undefined;
    return { ...own.env, [name]: file?.path ?? first.value };
  };
  let result: ChildResult;
  try {
    result = await runChild({
      command,
      env: handOver,
      masked: { stdout: options.mask ?? !deps.io.stdout.isTTY, stderr: options.mask ?? !deps.io.stderr.isTTY },
      secrets: forms.all,
      onTerminal: deps.io.stdin.isTTY || deps.io.stdout.isTTY || deps.io.stderr.isTTY,
      onUnheard: ({ code, message }) => deps.io.warn(`the command could not be sent a signal: ${code ?? message}`),
      own,
    });
  } catch (error) {
    if (!isStartFailure(error)) throw error;
    return await tellStartFailure(command[0] ?? "", error, deps);
  } finally {
    await file?.stop();
  }
  const { exitCode, lost, isStuck } = result;
  if (isStuck) {
    await pendingSaves.settled();
    own.exit(exitCode);
  }
  if (lost && exitCode === 0) {
    throw new AgentAuthError("internal_error", `the command's output cannot be passed on: ${lost.message}`, {
      class: "internal",
      hint: "look at the disk or the device that the output goes to",
      cause: lost,
    });
  }
  return exitCode;
}

function keepFile(
  first: Token,
  ask: (signal: AbortSignal) => Promise<Token>,
  { options, forms, deps }: Run,
): RefreshedTokenFile {
  return keepTokenFileFresh({
    folder: join(homeOf(deps), "run"),
    first,
    ask,
    onToken: (token) => remember(token, forms, deps),
    onTrouble: (error) => {
      const reason = deps.redactor.redact(error instanceof Error ? error.message : String(error));
      deps.io.warn(`the token file cannot be renewed, and is tried again: ${reason}`);
    },
    minTtl: options.minTtl ?? 60,
    now: deps.now,
  });
}

/** Told before anybody gets the token: what prints it must find it masked. */
function remember(token: string, forms: TokenEncodings, { redactor }: CommandContext): void {
  redactor.add(token);
  forms.add(token);
}
