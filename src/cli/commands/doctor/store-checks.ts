import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isAgentAuthError } from "../../../errors.js";
import { quote, shellWord } from "../../../redact.js";
import { CipherError, sealedWith } from "../../../store/file/cipher.js";
import { CodecError, decodeClient, decodeGrant, decodeLogin } from "../../../store/file/codec.js";
import { fileStore } from "../../../store/file/file.js";
import { checkPrivateFolder, readPrivateFile } from "../../../store/file/private-file.js";
import { storeError } from "../../../store/store-error.js";
import type { StoreChoice } from "../../config/store.js";
import { type Finding, failed, ok, warning } from "./check.js";

/** The folders of private files, and how the text of a file in each is read; a token is text of any kind. */
const FOLDERS: Readonly<Record<string, (text: string) => unknown>> = {
  grants: decodeGrant,
  clients: decodeClient,
  logins: decodeLogin,
  tokens: () => undefined,
};

/** The folders that the store refuses to use where others can enter them. */
const GUARDED = ["grants", "clients", "claims"];

/**
 * Which store it is, where it keeps things, and how many logins.
 *
 * @throws `AgentAuthError` `store_failed` for a folder of secrets that others can enter
 */
export async function checkStore(choice: StoreChoice, home: string, profile: string): Promise<Finding> {
  const { value, source, fallback } = choice;
  const name = `${value} (${source})`;
  if (value === "memory") return ok(`${name}: nothing is kept when a command ends`);
  for (const folder of GUARDED) checkPrivateFolder(join(home, folder));
  if (value === "keyring") {
    const told = `${name}: ${filesIn(home, "grants").length} logins in ${home}`;
    const lax = `${told}; without it, logins are kept unsealed (store_fallback of profile ${profile})`;
    return fallback === "file" ? warning(lax, "agentauth config unset store_fallback") : ok(told);
  }
  const logins = await fileStore(home).list();
  const own = logins.filter((login) => login.profile === profile).length;
  const other = logins.length === own ? "" : `, ${logins.length - own} of other profiles`;
  return ok(`${name}: ${own} login${own === 1 ? "" : "s"} of profile ${quote(profile)}${other}, in ${home}`);
}

/**
 * Whether each file that is kept can be used, by its mode, its owner and its form.
 *
 * @param store the kind of store; undefined where what is asked for is none
 */
export function checkFiles(home: string, store: StoreChoice["value"] | undefined): Finding {
  const paths = Object.keys(FOLDERS).flatMap((folder) => filesIn(home, folder).map((name) => ({ folder, name })));
  const verdicts = paths.map(({ folder, name }) => verdictOn(join(home, folder, name), FOLDERS[folder]));
  const unusable = verdicts.filter((verdict) => typeof verdict === "object");
  const sealed = verdicts.filter((verdict) => verdict === "sealed").length;
  const count = `${paths.length} file${paths.length === 1 ? "" : "s"}`;
  if (unusable.length > 0) return unusableFinding(unusable, count);
  // Only the key in the keychain tells whether a sealed file can be used.
  if (sealed > 0 && store !== "keyring") {
    return warning(
      `${sealed} of ${count} are sealed, and only the keyring store opens them`,
      "set AGENTAUTH_STORE=keyring",
    );
  }
  return ok(paths.length === 0 ? "none yet" : `${count}, all can be used${sealed > 0 ? ` (${sealed} sealed)` : ""}`);
}

/** So many files are named in a line; the others come up when these are done with. */
const MOST_SHOWN = 3;

interface Problem {
  why: string;
  /** The command that repairs it or sets it aside. */
  remedy: string;
}

function unusableFinding(unusable: readonly Problem[], count: string): Finding {
  const shown = unusable.slice(0, MOST_SHOWN);
  const more = unusable.length > shown.length ? `; and ${unusable.length - shown.length} more` : "";
  return failed(
    `${unusable.length} of ${count} cannot be used: ${shown.map(({ why }) => why).join("; ")}${more}`,
    shown.map(({ remedy }) => remedy).join(" && "),
  );
}

function verdictOn(path: string, decode: ((text: string) => unknown) | undefined): Problem | "sealed" | "usable" {
  const aside = `mv ${shellWord(path)} ${shellWord(`${path}.broken`)}`;
  try {
    const text = readPrivateFile(path);
    if (text === undefined) return "usable";
    if (sealedWith(text) !== undefined) return "sealed";
    decode?.(text);
    return "usable";
  } catch (error) {
    if (error instanceof CodecError || error instanceof CipherError)
      return { why: `${path}: ${error.message}`, remedy: aside };
    if (!isAgentAuthError(error)) throw error;
    // Some hints are words, and only a command can stand beside other commands.
    const remedy = error.hint !== undefined && /^(?:chmod|chown) /.test(error.hint) ? error.hint : aside;
    return { why: error.message, remedy };
  }
}

/** The names of the files of ours in a folder; none where there is no folder. */
function filesIn(home: string, folder: string): string[] {
  const names = namesIn(join(home, folder));
  return folder === "tokens"
    ? names.filter((name) => !TEMPORARY.test(name))
    : names.filter((name) => name.endsWith(".json"));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw storeError(`the folder ${folder} cannot be read`, error);
  }
}

const TEMPORARY = /\.tmp(?:-[\w-]+)?$/;
/** No command takes this long between making a file and giving it its name; a younger one may be work in hand. */
const OLD_MS = 10 * 60_000;

/**
 * Files that a killed process left half-written.
 *
 * @param now milliseconds since the epoch
 */
export function checkLeftovers(home: string, now: number): Finding {
  const paths = ["", "claims", ...Object.keys(FOLDERS)].flatMap((folder) =>
    namesIn(join(home, folder))
      .filter((name) => TEMPORARY.test(name))
      .map((name) => join(home, folder, name)),
  );
  const old = paths.filter((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat?.isFile() === true && now - stat.mtimeMs > OLD_MS;
  });
  if (old.length === 0) return ok("none");
  const shown = old.slice(0, MOST_SHOWN).map(shellWord);
  return warning(`${old.length} temporary files of commands that were killed`, `rm ${shown.join(" ")}`);
}
