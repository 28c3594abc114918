import { resolve } from "node:path";
import { AgentAuthError } from "../../../errors.js";
import { system } from "../../../platform/system.js";
import { userFolder } from "../../../profile/home.js";
import { storingToken } from "../../../profile/service-settings.js";
import type { Profile } from "../../../profile/settings-file.js";
import { storeToken } from "../../config/token-file.js";
import { readHiddenLine } from "../../io/hidden-line.js";
import type { CommandContext } from "../../runtime/context.js";
import type { ConfigOptions } from "./options.js";

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
  return FILES.has(key) && value !== "" ? absolutePath(value, context) : value;
}

function absolutePath(path: string, { io }: CommandContext): string {
  return resolve(path.replace(system.name === "win32" ? /^~(?=[\\/])/ : /^~(?=\/)/, () => userFolder(io.env)));
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
      throw new AgentAuthError(
        "usage",
        "the API token must come from stdin, which is a terminal, and prompts are disabled",
        {
          class: "usage",
          hint: storingToken(),
        },
      );
    }
    io.say("paste the API token, which is not shown, then press Enter");
  }
  // A console of Windows has no end of the input.
  const text = io.stdin.isTTY
    ? await readHiddenLine(io.stdin, () => signals.raise("SIGINT"), signal)
    : await io.stdin.text({ signal });
  const token = text.replace(/\r?\n$/, "");
  redactor.add(token);
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new AgentAuthError(
    "usage",
    "the text on stdin is not an API token: it is empty, or contains blanks or line breaks",
    {
      class: "usage",
    },
  );
}
