import { spawn } from "node:child_process";
import { abortedError } from "../../../errors.js";
import type { CommandContext } from "../../runtime/context.js";

/** What Node itself may need to start. */
const OF_NODE = /^(?:NODE_\w+|PATH|LD_LIBRARY_PATH|SystemRoot|windir|TEMP|TMP|TMPDIR)$/i;

/**
 * Runs the same command of this program in several processes at once.
 *
 * @param home the folder with the logins that they share; they get no settings and no proxy of the environment
 * @returns what each printed
 * @throws Error for a process that fails
 */
export async function runTogether(
  count: number,
  args: readonly string[],
  home: string,
  { program, io, signal }: Pick<CommandContext, "io" | "signal"> & { program: readonly [string, string] },
): Promise<string[]> {
  const env = {
    ...Object.fromEntries(Object.entries(io.env).filter(([name]) => OF_NODE.test(name))),
    AGENTAUTH_HOME: home,
  };
  const run = async () => {
    const [node, script] = program;
    const child = spawn(node, [script, ...args], { env, signal, windowsHide: true, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    // It also closes where it could not be started, or was ended by the signal.
    child.on("error", ({ message }) => err.push(Buffer.from(message)));
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (signal.aborted) throw abortedError(signal);
    if (code !== 0) throw new Error(`a process ended with ${String(code)}: ${Buffer.concat(err).toString("utf8")}`);
    return Buffer.concat(out).toString("utf8").trimEnd();
  };
  // All of them have ended before the folder that they share is removed.
  const results = await Promise.allSettled(Array.from({ length: count }, run));
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}
