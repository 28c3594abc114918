// Listens at a Unix socket, and passes it to a program that it starts again when it has ended, as systemd does:
// socket-launcher.mjs <path> <times> <program> <argument>...
import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { createServer } from "node:net";

const [path, times, ...words] = process.argv.slice(2);
const server = createServer().listen(path, () => {
  chmodSync(path, 0o600);
  const env = { ...process.env, LISTEN_FDS: "1", LISTEN_FDNAMES: "agent" };
  // It waits, so that it accepts no connection itself.
  for (let nth = 0; nth < Number(times); nth++)
    spawnSync("sh", ["-c", 'echo "pid $$" >&2; LISTEN_PID=$$ exec "$@"', "sh", ...words], {
      env,
      stdio: ["ignore", "inherit", "inherit", server._handle.fd],
    });
  process.exit(0);
});
