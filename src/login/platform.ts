import { isIP } from "node:net";
import { type OptionText, sdkOption } from "./messages.js";

/** The facts that the detection reads. */
export interface PlatformFacts {
  /** The environment; an empty variable is unset. */
  env: Readonly<Record<string, string | undefined>>;
  exists: (path: string) => boolean;
  platform: NodeJS.Platform;
}

/** Where the program runs, as far as it matters for a browser. */
export interface LoginEnvironment {
  readonly ssh: boolean;
  readonly container: boolean;
  /** Whether a browser started here would be visible to the user. */
  readonly hasBrowser: boolean;
  /** What the user must do so that the browser reaches the redirect address, or instead; one line each. */
  hints(redirectUri: string, optionText?: OptionText, hasDeviceFlow?: boolean): string[];
}

/** Finds out where the program runs. */
export function detectEnvironment({ env, exists, platform }: PlatformFacts): LoginEnvironment {
  const isSet = (name: string) => (env[name] ?? "") !== "";
  const ssh = isSet("SSH_CONNECTION") || isSet("SSH_TTY") || isSet("SSH_CLIENT");
  const wsl =
    platform === "linux" &&
    (isSet("WSL_DISTRO_NAME") || isSet("WSL_INTEROP") || exists("/proc/sys/fs/binfmt_misc/WSLInterop"));
  const container =
    ["KUBERNETES_SERVICE_HOST", "container", "REMOTE_CONTAINERS", "CODESPACES"].some(isSet) ||
    ["/.dockerenv", "/run/.containerenv"].some(exists);
  const ci = isSet("CI") && !["false", "0"].includes(env["CI"] ?? "");
  const headless = platform === "linux" && !wsl && !isSet("DISPLAY") && !isSet("WAYLAND_DISPLAY");
  return {
    ssh,
    container,
    hasBrowser: !ssh && !ci && !headless,
    hints(redirectUri, optionText = sdkOption, hasDeviceFlow = false) {
      const lines: string[] = [];
      if (ssh) lines.push(...sshHint(env, redirectUri));
      // Many containers run an SSH server or a CI job: the hint for the environment nearest to the user comes first.
      if (container) lines.push(...containerHint(redirectUri, optionText, hasDeviceFlow));
      if (wsl) lines.push(...wslHint(redirectUri, optionText));
      if (ci) lines.push(...CI_HINT);
      return lines;
    },
  };
}

const CI_HINT = [
  "This looks like CI, where no user can log in.",
  "Log in on another machine, and copy its AGENTAUTH_HOME folder here.",
];

/** The exact command: with the port forwarded, the remote browser reaches the listener at the same address. */
function sshHint(env: PlatformFacts["env"], redirectUri: string): string[] {
  const port = readPort(redirectUri);
  const [, , server = "", serverPort = "22"] = (env["SSH_CONNECTION"] ?? "").split(" ");
  const user = [env["USER"], env["LOGNAME"]].find((name) => name !== undefined && /^[\w.-]+$/.test(name));
  const destination = isIP(server) === 0 || user === undefined ? "<user@host>" : `${user}@${server}`;
  const extra = /^\d+$/.test(serverPort) && serverPort !== "22" ? ` -p ${serverPort}` : "";
  return [
    "You are connected by SSH.",
    "If your browser is on the computer you came from, run this there first:",
    `  ssh -L ${port}:127.0.0.1:${port}${extra} ${destination}`,
  ];
}

function containerHint(redirectUri: string, optionText: OptionText, hasDeviceFlow: boolean): string[] {
  const device = hasDeviceFlow ? ` or ${optionText("flow", "device")}` : "";
  return [
    "This looks like a container.",
    `A browser outside reaches ${redirectUri} only if`,
    "the container shares the network of its host (docker run --network host),",
    `or port ${readPort(redirectUri)} is forwarded to its loopback address.`,
    `Otherwise log in with ${optionText("flow", "paste")}${device}.`,
  ];
}

function wslHint(redirectUri: string, optionText: OptionText): string[] {
  return [
    "This is WSL. A browser on Windows needs its localhost forwarding to reach",
    `${redirectUri}. If the last page does not load,`,
    `try ${optionText("redirectHost", "localhost")} or ${optionText("flow", "paste")}.`,
  ];
}

function readPort(redirectUri: string): string {
  return new URL(redirectUri).port || "80";
}
