/** The path of a Unix socket, and who may use it. */
import { fstatSync, lstatSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { checkPrivateFolder, makePrivateFolder } from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";

/** Of a Unix socket; on Linux it is 107. */
const MAX_PATH = 103;

/** Makes the folder, checks it, and removes the socket of a broker that has died. */
export async function prepareSocket(path: string, listen: string): Promise<void> {
  // Node would cut it off, and make the socket in another folder.
  if (Buffer.byteLength(path) > MAX_PATH) throw listenError(listen, `has a path of more than ${MAX_PATH} bytes`);
  const folder = dirname(path);
  makePrivateFolder(folder);
  checkPrivateFolder(folder);
  const before = lstatSync(path, { throwIfNoEntry: false });
  if (before === undefined) return;
  if (!before.isSocket()) throw listenError(listen, "is a file that is no socket");
  const isAlive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true)).once("error", () => resolve(false));
    probe.once("connect", () => probe.destroy());
  });
  if (isAlive) throw listenError(listen, "is in use by another broker");
  rmSync(path);
}

/**
 * The path of a listening Unix socket that the parent process has opened. Its mode keeps other users out, as that of a socket
 * of our own does: by default systemd lets everyone in.
 */
export function pathOfInherited(fd: number, listen: string): string {
  const { ino } = fstatSync(fd);
  // Num: RefCount Protocol Flags Type St Inode Path
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  const path = lines.map((line) => line.split(" ").filter(Boolean)).find((fields) => fields[6] === String(ino))?.[7];
  if (path === undefined || !path.startsWith("/")) throw listenError(listen, "is no Unix socket with a path");
  const { mode, uid } = lstatSync(path);
  if (uid !== 0 && uid !== process.getuid?.())
    throw storeError(
      `the socket ${path} belongs to another user`,
      undefined,
      "SocketUser= of its unit names its owner",
    );
  if ((mode & 0o002) !== 0)
    throw storeError(`the socket ${path} is open to all users`, undefined, "set SocketMode=0600 or 0660 in its unit");
  return path;
}

/** The error for an address that cannot be used. */
export function listenError(listen: string, what: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("usage", `the address ${quote(listen)} ${what}`, {
    class: "usage",
    hint: "for example unix:/run/user/1000/agentauth/agent.sock",
    cause,
  });
}
