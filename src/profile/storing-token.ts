import { withInput } from "../platform/shell.js";

/** The command that stores the API token. It reads a file, since a command line is seen by others. */
export function storingToken(): string {
  return withInput("agentauth config set api_token -", "token.txt");
}
