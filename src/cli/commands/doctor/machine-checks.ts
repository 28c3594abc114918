import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { chosenByEnvironment } from "../../../login/browser.js";
import { commandWords } from "../../../login/command-words.js";
import { detectEnvironment, type LoginEnvironment } from "../../../login/platform.js";
import { type Env, system } from "../../../platform/system.js";
import { readSandboxState } from "../../../profile/sandbox-state.js";
import { quote } from "../../../redact.js";
import { type CheckFinding, failed, ok, skipped, warning } from "./check.js";

/** The oldest supported Node; a test compares it with package.json. */
export const NODE_FLOOR = "20.19";

/** @param version as in `process.version` */
export function checkNode(version: string): CheckFinding {
  const [major = 0, minor = 0] = numbers(version);
  const [leastMajor = 0, leastMinor = 0] = numbers(NODE_FLOOR);
  const enough = major > leastMajor || (major === leastMajor && minor >= leastMinor);
  if (enough) return ok(`${version}, at least ${NODE_FLOOR} is required`);
  return failed(
    `${version} is too old: at least ${NODE_FLOOR} is required`,
    "install a newer Node: https://nodejs.org",
  );
}

function numbers(version: string): number[] {
  return version.replace(/^v/, "").split(".").map(Number);
}

/** Whether the sandbox runs; both results are ok. */
export function checkSandbox(home: string): CheckFinding {
  const state = readSandboxState(home);
  if (state === undefined) return ok("not running");
  return ok(`running at ${state.base_url} (process ${state.pid}); --profile sandbox uses it`);
}

const OTHER_FLOWS = "log in with --flow paste, or --flow device if the issuer supports it";

/** Whether a login can open a browser for the user. */
export function checkBrowser(env: Env, noInput: string | undefined): CheckFinding {
  if (noInput !== undefined) return ok(`not opened: ${noInput}`);
  const environment = detectEnvironment({ env, exists: existsSync, platform: process.platform });
  const place = placeOf(environment);
  const suffix = place === "" ? "" : ` (${place})`;
  const command = chosenByEnvironment(env);
  if (command === "none") return ok(`not opened: BROWSER is none${suffix}`);
  if (command !== undefined) {
    const [program = ""] = commandWords(command, isFile);
    if (isProgram(program, env)) return ok(`${program} (BROWSER)${suffix}`);
    return warning(`BROWSER names ${quote(program)}, which is not found${suffix}`, "correct or unset BROWSER");
  }
  if (!environment.hasBrowser) return warning(`no browser can be opened here${suffix}`, OTHER_FLOWS);
  return ok(`the system's default${suffix}`);
}

function placeOf({ ssh, wsl, container, ci, headless }: LoginEnvironment): string {
  const places: [boolean, string][] = [
    [ssh, "over SSH"],
    [wsl, "WSL"],
    [container, "in a container"],
    [ci, "in CI"],
    [headless, "no display"],
  ];
  return places.flatMap(([here, name]) => (here ? [name] : [])).join(", ");
}

/** Whether the program exists: by its path, else in PATH. */
function isProgram(program: string, env: Env): boolean {
  const folders = /[\\/]/.test(program) ? [""] : (env["PATH"] ?? "").split(delimiter);
  const endings = system.name === "win32" ? ["", ...(env["PATHEXT"] ?? ".EXE;.CMD").split(";")] : [""];
  return folders.some((folder) => endings.some((ending) => isFile(join(folder, program + ending))));
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** An optional package, and the feature that needs it. */
export interface OptionalPackage {
  name: string;
  /** The supported release; a test compares it with package.json. */
  version: string;
  /** The feature that needs it. */
  serves: string;
}

/** The optional packages. */
export const OPTIONAL_PACKAGES = {
  jq: { name: "jq-wasm", version: "3.0.0-jq-1.8.2", serves: "--jq" },
  keyring: { name: "@napi-rs/keyring", version: "2.1.2", serves: "AGENTAUTH_STORE=keyring" },
} as const satisfies Record<string, OptionalPackage>;

/**
 * Whether an optional package can be loaded.
 *
 * @param wanted whether the settings use the feature: then the package must be installed
 * @param load throws where it cannot be
 */
export function checkPackage(
  { name, version, serves }: OptionalPackage,
  wanted: boolean,
  load: (name: string) => unknown = createRequire(import.meta.url),
): CheckFinding {
  try {
    load(name);
    return ok("installed");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const missing = code === "MODULE_NOT_FOUND";
    const found = missing
      ? `not installed: ${serves} needs it`
      : `installed, but it cannot be loaded (${code ?? "no reason reported"}): ${serves} needs it`;
    const hint = `npm install ${name}@${version} (add --global if agentauth is installed globally)`;
    if (wanted) return failed(found, hint);
    return missing ? skipped(found, hint) : warning(found, hint);
  }
}
