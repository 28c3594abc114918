import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { abortedError, usageError } from "../../../errors.js";
import { untilAborted } from "../../../http/deadline.js";
import type { Profile } from "../../../profile/profile-settings.js";
import { checkApiToken, isReference } from "../../../profile/secrets.js";
import { storingToken } from "../../../profile/service-settings.js";
import { expandUserFolder } from "../../../profile/settings.js";
import { storeToken } from "../../config/api-token.js";
import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";
import type { InStream } from "../../io/stream.js";
import type { CommandContext } from "../../runtime/context.js";

/** Options of the `config` commands. */
export interface ConfigOptions extends GlobalFlags, OutputFlags {
  key: string;
  value: string;
  /** Whether the line of the settings file is printed too. */
  showOrigin?: boolean;
}

const FILES: ReadonlySet<keyof Profile> = new Set(["client_cert", "client_key"]);

/** The value to store for a setting; a file becomes an absolute path, since commands run in other folders too. */
export async function valueToStore(
  key: keyof Profile,
  profile: string,
  options: ConfigOptions,
  context: CommandContext,
): Promise<string> {
  const { value } = options;
  if (key === "api_token") return tokenReference(profile, options, context);
  if (key === "store_url" || key === "store_keys") return absoluteReference(value, context);
  if (!FILES.has(key) || value === "") return value;
  return isReference(value) ? absoluteReference(value, context) : absolutePath(value, context);
}

function absolutePath(path: string, { io }: CommandContext): string {
  return resolve(expandUserFolder(path, io.env));
}

function absoluteReference(value: string, context: CommandContext): string {
  const [, path] = /^file:(.+)$/s.exec(value) ?? [];
  return path === undefined ? value : `file:${absolutePath(path, context)}`;
}

/** The reference to store for the API token. A token from stdin is written to a file first. */
async function tokenReference(
  profile: string,
  { value, input }: ConfigOptions,
  context: CommandContext,
): Promise<string> {
  if (value !== "-") return absoluteReference(value, context);
  return storeToken(context.home(), profile, await readToken(input !== false, context));
}

async function readToken(mayPrompt: boolean, { io, redactor, signal, signals }: CommandContext): Promise<string> {
  if (io.stdin.isTTY) {
    if (!mayPrompt || io.env["AGENTAUTH_NO_INPUT"]) {
      throw usageError(
        "the API token must come from stdin, which is a terminal, and prompts are disabled",
        storingToken(),
      );
    }
    io.say("paste the API token, which is not shown, then press Enter");
  }
  // A console of Windows has no end of the input.
  const text = io.stdin.isTTY
    ? await readHiddenLine(io.stdin, () => signals.raise("SIGINT"), signal)
    : await io.stdin.text({ signal });
  redactor.add(text.trim());
  return checkApiToken(text, "from stdin");
}

/**
 * Reads one line from a terminal that does not show it.
 *
 * @param onInterrupt called for Ctrl-C, which is no signal while the line is read
 * @returns the line, or an empty one at the end of the input
 * @throws the reason of the signal when it fires
 */
export async function readHiddenLine(
  { stream }: Pick<InStream, "stream">,
  onInterrupt: () => void,
  signal: AbortSignal,
): Promise<string> {
  if (signal.aborted) throw abortedError(signal);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: stream, output: nowhere, terminal: true, historySize: 0 });
  try {
    const line = new Promise<string>((resolve) => {
      reader.once("line", resolve);
      reader.once("close", () => resolve(""));
      reader.on("SIGINT", onInterrupt);
    });
    return await untilAborted(line, signal);
  } finally {
    reader.close();
    // A terminal that stays open would keep the program from ending.
    stream.pause();
  }
}
