import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { suggest } from "../../../http/suggest.js";
import { chosenByEnvironment } from "../../../login/browser.js";
import { commandWords } from "../../../login/command-words.js";
import { detectEnvironment } from "../../../login/platform.js";
import { codeOf } from "../../../platform/files.js";
import { type Env, system } from "../../../platform/system.js";
import type { Config } from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { ENVIRONMENT } from "../../runtime/environment.js";
import { type CheckFinding, failed, ok, skipped, warning } from "./check.js";
import type { Checks } from "./subject.js";

/** What this machine has: Node, the environment, a browser and the optional packages. */
export const MACHINE_CHECKS = {
  node: () => checkNode(process.version),

  /** Variables with our prefix that nothing reads, and misleading values. The values of unknown variables are not shown. */
  variables({ env, known }) {
    const names = new Set([...KNOWN_VARIABLES, ...namedByProfiles(known.config)]);
    const ours = Object.keys(env).filter((name) => name.toUpperCase().startsWith(PREFIX) && env[name]);
    const unknownNames = ours.filter((name) => !names.has(name)).sort();
    const remarks = [...unknownNames.map((name) => `${name} is set, but nothing reads it`), ...valueRemarks(env)];
    if (remarks.length === 0) return ok(ours.length === 0 ? "none are set" : `${ours.length} set, all known`);
    return warning(remarks.join("; "), unknownHint(unknownNames));
  },

  /** Whether a login can open a browser for the user. */
  browser({ env, noInput }) {
    if (noInput !== undefined) return ok(`not opened: ${noInput}`);
    const environment = detectEnvironment({ env, exists: existsSync, platform: process.platform });
    const here = PLACES.filter(([place]) => environment[place]).map(([, text]) => text);
    const places = here.length === 0 ? "" : ` (${here.join(", ")})`;
    const command = chosenByEnvironment(env);
    if (command === "none") return ok(`not opened: BROWSER is none${places}`);
    if (command === undefined) {
      if (environment.hasBrowser) return ok(`the system's default${places}`);
      const otherFlows = "log in with --flow paste, or --flow device if the issuer supports it";
      return warning(`no browser can be opened here${places}`, otherFlows);
    }
    const [program = ""] = commandWords(command, isFile);
    if (isProgram(program, env)) return ok(`${program} (BROWSER)${places}`);
    return warning(`BROWSER names ${quote(program)}, which is not found${places}`, "correct or unset BROWSER");
  },

  "jq-wasm": () => checkPackage(OPTIONAL_PACKAGES.jq, false),
  "@napi-rs/keyring": ({ store }) => checkPackage(OPTIONAL_PACKAGES.keyring, store?.value === "keyring"),
} satisfies Checks;

/** The oldest supported Node; a test compares it with package.json. */
export const NODE_FLOOR = "20.19";

/** @param version as in `process.version` */
export function checkNode(version: string): CheckFinding {
  if (version.localeCompare(`v${NODE_FLOOR}`, "en", { numeric: true }) >= 0)
    return ok(`${version}, at least ${NODE_FLOOR} is required`);
  const found = `${version} is too old: at least ${NODE_FLOOR} is required`;
  return failed(found, "install a newer Node: https://nodejs.org");
}

const PREFIX = "AGENTAUTH_";

/** Every variable that this program reads, and the one that `exec` sets for another. */
export const KNOWN_VARIABLES: readonly string[] = [
  ...ENVIRONMENT.flatMap(([names]) => names.split(", ")).filter((name) => name.startsWith(PREFIX)),
  "AGENTAUTH_TOKEN",
];

/** `env:NAME` in a profile makes any name known. */
function namedByProfiles(config: Config): string[] {
  return Object.values(config.profiles)
    .flatMap(({ api_token = "", store_url = "", store_keys = "" }) => [api_token, store_url, store_keys])
    .flatMap((text) => (text.startsWith("env:") ? [text.slice("env:".length)] : []));
}

function valueRemarks(env: Env): string[] {
  const remarks: string[] = [];
  const { AGENTAUTH_ERRORS: errors, AGENTAUTH_NO_INPUT: noInput } = env;
  if (errors && errors !== "json") remarks.push(`AGENTAUTH_ERRORS is ${quote(errors, 40)}; only "json" has an effect`);
  if (noInput && /^(?:0|false|no|off)$/i.test(noInput)) {
    remarks.push(`AGENTAUTH_NO_INPUT is ${quote(noInput)}, which counts as set like any other value`);
  }
  return remarks;
}

/** Compares names without the prefix: with it, all names look alike. */
function unknownHint(unknownNames: readonly string[]): string | undefined {
  const endings = KNOWN_VARIABLES.map((name) => name.slice(PREFIX.length));
  const suggestions = unknownNames.flatMap((name) => suggest(name.slice(PREFIX.length), endings) ?? []);
  if (suggestions.length > 0) return `did you mean ${suggestions.map((ending) => PREFIX + ending).join(", ")}?`;
  return "agentauth help environment lists the variables and their values";
}

/** Where the program may run, as the end of a finding. */
const PLACES = [
  ["ssh", "over SSH"],
  ["wsl", "WSL"],
  ["container", "in a container"],
  ["ci", "in CI"],
  ["headless", "no display"],
] as const;

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

/** The optional packages: the supported release, which a test compares with package.json, and the feature that needs it. */
export const OPTIONAL_PACKAGES = {
  jq: { name: "jq-wasm", version: "3.0.0-jq-1.8.2", serves: "--jq" },
  keyring: { name: "@napi-rs/keyring", version: "2.1.2", serves: "AGENTAUTH_STORE=keyring" },
} as const;

/**
 * Whether an optional package can be loaded.
 *
 * @param wanted whether the settings use the feature: then the package must be installed
 * @param load throws where it cannot be
 */
export function checkPackage(
  { name, version, serves }: Record<"name" | "version" | "serves", string>,
  wanted: boolean,
  load: (name: string) => unknown = createRequire(import.meta.url),
): CheckFinding {
  try {
    load(name);
    return ok("installed");
  } catch (error) {
    const code = codeOf(error);
    const missing = code === "MODULE_NOT_FOUND";
    const found = missing
      ? `not installed: ${serves} needs it`
      : `installed, but it cannot be loaded (${code ?? "no reason reported"}): ${serves} needs it`;
    const hint = `npm install ${name}@${version} (add --global if agentauth is installed globally)`;
    if (wanted) return failed(found, hint);
    return missing ? skipped(found, hint) : warning(found, hint);
  }
}
