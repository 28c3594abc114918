import { Redactor } from "../../redact.js";
import { listEncodings, report, runCommand } from "../commands/exec/child.js";
import { createIo } from "../io/io.js";
import { withholdSecrets } from "../runtime/agent-mode.js";
import type { Host } from "../runtime/context.js";
import { EXIT_CODES } from "../runtime/exit-codes.js";
import { processSignals } from "../runtime/signals.js";
import { freshToken, readArguments } from "./cached-token.js";

/**
 * Runs the command of an `exec` command line with a token that is stored and fresh, without loading the program.
 *
 * @returns the exit code; undefined where nothing was run and the whole program has to decide
 */
export async function execWithCachedToken(argv: readonly string[], host: Host): Promise<number | undefined> {
  const dashes = argv.indexOf("--");
  const command = argv.slice(dashes + 1);
  const args = dashes > 0 && command[0] ? readArguments(argv.slice(1, dashes), "--as") : undefined;
  const { own: name = "AGENTAUTH_TOKEN" } = args ?? {};
  if (args === undefined || !/^[A-Z]\w*$/.test(name)) return undefined;
  const io = createIo(host);
  const token = await freshToken(args, io.env, host.clock?.epoch());
  if (token === undefined) return undefined;
  const redactor = new Redactor();
  redactor.add(token.value);
  withholdSecrets(io.env, host.env, redactor);
  const secrets = listEncodings(token.value).map((form) => Buffer.from(form));
  const { stdin, stdout, stderr, env } = host;
  const context = {
    ...{ io, redactor, signal: new AbortController().signal, signals: processSignals(host) },
    pendingSaves: { settled: async () => {} },
    acquireProcess: () => ({ stdin, stdout, stderr, env, release() {}, exit: (code: number) => host.exit(code) }),
  };
  const running = runCommand(command, { variable: [name, token.value], secrets }, context);
  // Node itself would print an unhandled error: with its secrets.
  return running.catch((error) => report(error, EXIT_CODES.internal, context));
}
