import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";

/** What is asked of the keychain. */
export interface KeychainRequest {
  /** The path of the package that knows the keychain. */
  package: string;
  service: string;
  account: string;
  /** Is written; undefined: the entry is read. */
  value: string | undefined;
}

/** What came of it. */
export type KeychainReply =
  /** It was done; `value` is what was read, if there is such an entry. */
  | { outcome: "done"; value: string | undefined }
  /** The package is there and cannot be used: it has no binary for this machine, or is too old. */
  | { outcome: "unusable"; message: string }
  /** The keychain said no. */
  | { outcome: "refused"; message: string }
  /** Nothing came in time, or the process ended without a word. */
  | { outcome: "timeout" | "died" };

// On Linux the package would fall back, without a word, to the kernel's keyring, which forgets everything when the
// machine is restarted. Versions without the option for it lack LinuxStore.
const PROGRAM = `
const { readFileSync, writeSync } = require("node:fs");
const asked = JSON.parse(readFileSync(0, "utf8"));
function answer() {
  let keyring;
  try {
    keyring = require(asked.package);
  } catch (error) {
    return { outcome: "unusable", message: error.message.split("\\n")[0] };
  }
  if (process.platform === "linux" && keyring.LinuxStore === undefined) {
    return { outcome: "unusable", message: "it is older than 2.1.0" };
  }
  try {
    const entry = new keyring.Entry(asked.service, asked.account, { linux: { store: "secret-service" } });
    if (asked.value !== undefined) return { outcome: "done", value: entry.setPassword(asked.value) };
    return { outcome: "done", value: entry.getPassword() ?? undefined };
  } catch (error) {
    return { outcome: "refused", message: error.message };
  }
}
writeSync(1, JSON.stringify(answer()));
`;

/**
 * Asks the keychain in a process of its own: the native calls block the thread that makes them, also while a person is
 * asked for a password or a bus does not answer, and a process is all that can be ended then. What is secret goes
 * through pipes, never through arguments or the environment.
 *
 * @param timeout in milliseconds
 * @param env the environment of that process. Default: that of this one
 */
export async function askKeychain(
  request: KeychainRequest,
  timeout: number,
  env: Readonly<Record<string, string | undefined>> | undefined,
): Promise<KeychainReply> {
  const child = spawn(process.execPath, ["--input-type=commonjs", "-e", PROGRAM], {
    // Not the caller's folder, which may be anybody's, or gone.
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
  // A process that ended early says why by its reply, or by having none.
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
