import { homedir } from "node:os";
import { resolve } from "node:path";
import { AgentAuthError } from "../../../errors.js";
import type { Profile } from "../../config/file.js";
import { storeToken } from "../../config/token-file.js";
import type { CommandContext } from "../../runtime/context.js";
import type { ConfigOptions } from "./options.js";

const FILES: ReadonlySet<keyof Profile> = new Set(["client_cert", "client_key"]);

/** What is written down for a setting: of files, the whole path, since the settings are read in other folders too. */
export async function valueToKeep(
  key: keyof Profile,
  profile: string,
  options: ConfigOptions,
  context: CommandContext,
): Promise<string> {
  const { value } = options;
  if (key === "api_token") return tokenReference(profile, options, context);
  return FILES.has(key) && value !== "" ? wholePath(value) : value;
}

function wholePath(path: string): string {
  return resolve(path.replace(/^~(?=\/)/, homedir()));
}

/** What is written down for the API token: where it is. A token that comes on stdin is kept in a file first. */
async function tokenReference(
  profile: string,
  { value, input }: ConfigOptions,
  context: CommandContext,
): Promise<string> {
  if (value.startsWith("file:")) {
    const path = value.slice("file:".length);
    return path === "" ? value : `file:${wholePath(path)}`;
  }
  if (value !== "-") return value;
  return storeToken(context.home(), profile, await readToken(input !== false, context));
}

async function readToken(mayAsk: boolean, { io, redactor, signal }: CommandContext): Promise<string> {
  if (io.stdin.isTTY) {
    if (!mayAsk || io.env["AGENTAUTH_NO_INPUT"]) {
      throw new AgentAuthError(
        "usage",
        "the API token is to be read from stdin, which is a terminal, and nothing may be asked",
        {
          class: "usage",
          hint: "agentauth config set api_token - < token.txt",
        },
      );
    }
    io.say("paste the API token, then press Enter and Ctrl-D");
  }
  const token = (await io.stdin.text({ signal })).replace(/\r?\n$/, "");
  redactor.add(token);
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new AgentAuthError(
    "usage",
    "what came on stdin is not an API token: it is empty, or has blanks or line breaks in it",
    {
      class: "usage",
    },
  );
}
