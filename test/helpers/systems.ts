/** On Linux: its terminals, its table of processes, its keychain, `/dev/full`. */
export const ON_LINUX = process.platform === "linux";

/** On Windows, which has no modes, owners, symbolic links for every user, or signals that a program can send. */
export const ON_WINDOWS = process.platform === "win32";
