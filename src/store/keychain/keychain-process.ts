import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";

/** One call to the keychain. */
export interface KeychainRequest {
  /** The path of the package for the keychain. */
  package: string;
  service: string;
  account: string;
  /** The value to write; undefined to read the entry. */
  value: string | undefined;
}

/** The result of a call. */
export type KeychainReply =
  /** The call succeeded; `value` is the content that was read, if there is such an entry. */
  | { outcome: "done"; value: string | undefined }
  /** The package is installed and cannot be used: it has no binary for this machine, or is too old. */
  | { outcome: "unusable"; message: string }
  /** The keychain refused the call. */
  | { outcome: "refused"; message: string }
  /** No reply came in time, or the process exited without one. */
  | { outcome: "timeout" | "died" };

// On Linux the package would silently fall back to the kernel's keyring, which is lost when the machine restarts.
// Versions without the option for it lack LinuxStore.
const PROGRAM = `
const { readFileSync, writeSync } = require("node:fs");
const request = JSON.parse(readFileSync(0, "utf8"));
function answer() {
  let keyring;
  try {
    keyring = require(request.package);
  } catch (error) {
    return { outcome: "unusable", message: error.message.split("\\n")[0] };
  }
  if (process.platform === "linux" && keyring.LinuxStore === undefined) {
    return { outcome: "unusable", message: "it is older than 2.1.0" };
  }
  try {
    const entry = new keyring.Entry(request.service, request.account, { linux: { store: "secret-service" } });
    if (request.value !== undefined) return { outcome: "done", value: entry.setPassword(request.value) };
    return { outcome: "done", value: entry.getPassword() ?? undefined };
  } catch (error) {
    return { outcome: "refused", message: error.message };
  }
}
writeSync(1, JSON.stringify(answer()));
`;

/**
 * Calls the keychain in a helper process: the native calls block their thread, also while the user is prompted for a
 * password or a bus does not respond, and only a process can be stopped then. Secrets go through pipes, never through
 * arguments or the environment.
 *
 * @param timeout in milliseconds
 * @param env the environment of that process. Default: that of this one
 */
export async function callKeychain(
  request: KeychainRequest,
  timeout: number,
  env: Readonly<Record<string, string | undefined>> | undefined,
): Promise<KeychainReply> {
  const child = spawn(process.execPath, ["--input-type=commonjs", "-e", PROGRAM], {
    // Not the caller's folder, which another user may own, or which may be removed.
    cwd: dirname(process.execPath),
    stdio: ["pipe", "pipe", "ignore"],
    windowsHide: true,
    ...(env && { env }),
  });
  const kill = () => void child.kill("SIGKILL");
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill();
  }, timeout);
  process.once("exit", kill);
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  // A process that exits early is reported by its reply, or by the lack of one.
  child.stdin.on("error", () => undefined);
  child.stdin.end(JSON.stringify(request));
  try {
    await once(child, "close");
  } catch {
    return { outcome: "died" };
  } finally {
    clearTimeout(timer);
    process.off("exit", kill);
  }
  return late ? { outcome: "timeout" } : parseReply(Buffer.concat(chunks).toString("utf8"));
}

function parseReply(text: string): KeychainReply {
  let reply: unknown;
  try {
    reply = parseStrictJson(text);
  } catch {
    return { outcome: "died" };
  }
  const { outcome, value, message } = isJsonObject(reply) ? reply : {};
  if (outcome === "done") return { outcome, value: typeof value === "string" ? value : undefined };
  if (outcome === "unusable" || outcome === "refused") return { outcome, message: String(message) };
  return { outcome: "died" };
}
