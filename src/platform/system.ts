/** What the code asks of the operating system. */
export interface System {
  /** As in `process.platform`. */
  name: NodeJS.Platform;
  /**
   * Runs a tool of the system, without a shell.
   *
   * @returns what it printed; undefined where it is missing, fails or takes more than five seconds
   */
  run(program: string, args: readonly string[]): string | undefined;
}

/** The system that this process runs on. Everything that differs between systems asks it, so that tests can replace it. */
export const system: System = { name: process.platform, run };

function run(program: string, args: readonly string[]): string | undefined {
  // Loaded here, because few calls of the command need it.
  const { spawnSync } = process.getBuiltinModule("node:child_process");
  const { status, stdout } = spawnSync(program, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: 5000,
    windowsHide: true,
  });
  return status === 0 ? stdout : undefined;
}
