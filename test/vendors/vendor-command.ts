import { flagWords, paramFlags } from "../../src/cli/flags/flag-name.js";
import { shellWord } from "../../src/redact.js";
import type { ServerShape } from "./shape.js";

/** The flags with which a login at a server succeeds, each with its value. */
export function loginFlagsOf({ options }: Pick<ServerShape, "options">): string[][] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (typeof value === "object") return paramFlags(value);
    return [flagWords(name, value === true ? undefined : value)];
  });
}

/** The command that logs in at a server; undefined for one that stays refused. */
export function loginCommandOf(shape: ServerShape): string | undefined {
  const { server, client, refused } = shape;
  if (refused !== undefined) return undefined;
  const words = ["agentauth", "login", server, ...loginFlagsOf(shape).flat()].map(shellWord);
  return [...(typeof client === "string" ? [`AGENTAUTH_CLIENT_SECRET=${shellWord(client)}`] : []), ...words].join(" ");
}
