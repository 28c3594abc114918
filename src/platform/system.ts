/** What the code asks of the operating system. */
export interface System {
  /** As in `process.platform`. */
  name: NodeJS.Platform;
}

/** The system that this process runs on. Everything that differs between systems asks it, so that tests can replace it. */
export const system: System = { name: process.platform };
