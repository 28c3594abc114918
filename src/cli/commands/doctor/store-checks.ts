import { mkdtempSync, readdirSync, rmSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { isAgentAuthError } from "../../../errors.js";
import { decodeStoredLogin } from "../../../oauth/login/login-codec.js";
import { CodecError, decodeClient, decodeGrant } from "../../../oauth/model/codec.js";
import { changingMode, errorCode, moveAway, othersWithAccess, takingOwnership, tryStat } from "../../../platform.js";
import { engineReport } from "../../../profile/engine/health.js";
import { homeFolder } from "../../../profile/settings.js";
import type { StoreChoice } from "../../../profile/store-choice.js";
import { quote } from "../../../redact.js";
import { sealedWith } from "../../../store/file/file.js";
import { GRANTS, profileDigits } from "../../../store/file/file-grants.js";
import { type Keychain, osKeychain } from "../../../store/keychain/keychain.js";
import { keychainAccount } from "../../../store/keychain/keyring.js";
import {
  checkPrivateFolder,
  publishPrivateFile,
  readPublishedFile,
  reservePrivateFile,
} from "../../../store/private/private-file.js";
import { CipherError } from "../../../store/seal/sealing.js";
import { storeError } from "../../../store/store-error.js";
import { ACCESS_TEXT, classifyAccess } from "../../config/home-access.js";
import { countText } from "../../output/value.js";
import { canPrompt } from "../../runtime/context.js";
import { type CheckFinding, type Checks, failed, ok, type Subject, skipped, warning } from "./check.js";

const ELSEWHERE = "set AGENTAUTH_HOME to a folder that you can write to";
const OTHER_DISK = "set AGENTAUTH_HOME to a folder on a file system with hard links";
const PROBE = "probe";

/** The folders of private files, each with the decoder of its files; a token may be any text. */
const FOLDERS: Readonly<Record<string, (text: string) => unknown>> = {
  [GRANTS]: decodeGrant,
  clients: decodeClient,
  logins: decodeStoredLogin,
  tokens: () => undefined,
};

/** The folders that the store refuses to use if other users can enter them; those in them lie behind them. */
const GUARDED = [GRANTS, "clients", "claims"];

/** Our folder, and the store of logins: its files, its engine or its keychain. */
export const STORE_CHECKS = {
  /** Whether the folder exists and only this user can access it. */
  home({ env, home: found }) {
    const { value: home, source } = found ?? { value: homeFolder(env), source: "" };
    const where = `${home} (${source})`;
    const stat = tryStat(home);
    if (stat === undefined) return ok(`${where}, does not exist yet: created on first use`);
    if (!stat.isDirectory()) return failed(`${where} is not a folder`, "set AGENTAUTH_HOME to another path");
    return checkOwnership(where, home, stat);
  },

  writing: withHome(checkWriting),

  /** The kind of store, its location, and its number of logins. A folder of secrets that others can enter has failed. */
  async store({ engine, store, home: found, settings, problems, env }) {
    if (store === undefined) throw problems.store;
    const { value, source, fallback } = store;
    const profile = settings.profile.value;
    const name = `${value} (${source})`;
    if (engine) {
      const opened = engine().store;
      const logins = await opened.list();
      const own = logins.filter((login) => login.profile === profile).length;
      return ok(`${name}: ${loginCount(own, logins.length, profile)}, in ${opened.location}`);
    }
    if (value === "memory") return ok(`${name}: nothing is stored after a command ends`);
    const home = found?.value ?? homeFolder(env);
    for (const folder of GUARDED) checkPrivateFolder(join(home, folder));
    // Their names say enough: the check of the files reads them.
    const logins = filesIn(home, GRANTS);
    const own = logins.filter((path) => path.startsWith(profileDigits(profile))).length;
    if (value === "file") return ok(`${name}: ${loginCount(own, logins.length, profile)}, in ${home}`);
    const summary = `${name}: ${countText(logins.length, "login")} in ${home}`;
    const lax = `${summary}; without the keychain, logins are stored unsealed (store_fallback of profile ${profile})`;
    return fallback === "file" ? warning(lax, "agentauth config unset store_fallback") : ok(summary);
  },

  /** What is wrong with the engine and its keys; `store health` has all that is known of them. */
  async engine({ engine, context }) {
    if (engine === undefined) return undefined;
    const { errors, risks } = await engineReport(engine(), context.signal);
    if (errors.length > 0) return failed(errors.join("; "), "agentauth store health");
    return risks.length > 0 ? warning(risks.join("; "), "agentauth store health") : ok("can be used");
  },

  keychain: withHome((home, { options, env, store }) => {
    const keychain = osKeychain(keychainAccount(home), { timeoutMs: KEYCHAIN_CHECK_MS, env });
    return checkKeychain(store, keychain, canPrompt(options, { env }));
  }),

  /** Whether each stored file can be used: its mode, its owner and its format. */
  files: withHome((home, { store }) => {
    const results = Object.entries(FOLDERS).flatMap(([folder, decode]) =>
      filesIn(home, folder).map((name) => examineFile(join(home, folder, name), decode)),
    );
    const count = countText(results.length, "file");
    const unusable = results.filter((result) => typeof result === "object");
    if (unusable.length > 0) {
      const found = `${unusable.length} of ${count} cannot be used: ${unusable.map(({ why }) => why).join("; ")}`;
      return failed(found, unusable.map(({ remedy }) => remedy).join(" && "));
    }
    const sealed = results.filter((result) => result === "sealed").length;
    // Without the key in the keychain, a sealed file cannot be checked.
    if (sealed > 0 && store?.value !== "keyring") {
      const found = `${sealed} of ${count} are sealed, and only the keyring store can open them`;
      return warning(found, "set AGENTAUTH_STORE=keyring");
    }
    return ok(
      results.length === 0 ? "none yet" : `${count}, all can be used${sealed > 0 ? ` (${sealed} sealed)` : ""}`,
    );
  }),
} satisfies Checks;

/** A check of the folder of our files, which a user may not have. */
function withHome<Found>(check: (home: string, subject: Subject) => Found): (subject: Subject) => Found | CheckFinding {
  return (subject) =>
    subject.home === undefined ? skipped("there is no folder for files") : check(subject.home.value, subject);
}

function checkOwnership(where: string, home: string, stat: Stats): CheckFinding {
  const access = classifyAccess(stat);
  if (access === "private") return ok(where);
  if (access === "unchecked") {
    // Windows: its list of access needs a program of the system.
    const others = othersWithAccess(home);
    if (others === undefined) return ok(`${where}; who can read it is not checked: its list of access cannot be read`);
    if (others.length === 0) return ok(`${where}, readable by you and the system alone`);
    return warning(`${where} can be read by other accounts: ${others.join(", ")}`, changingMode("700", home));
  }
  const found = `${where} ${ACCESS_TEXT[access]}`;
  if (access === "foreign") return failed(found, takingOwnership(home, { owner: stat.uid, isTree: true }));
  const repair = changingMode("700", home, stat.uid);
  // Other users with write access can replace the settings.
  return access === "writable" ? failed(found, repair) : warning(found, repair);
}

/** Publishes a file twice under one name, as the store does, in a private folder that is removed afterwards. */
export function checkWriting(home: string): CheckFinding {
  if (tryStat(home)?.isDirectory() !== true) return skipped("the folder does not exist yet");
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(home, ".doctor-"));
    const path = join(folder, PROBE);
    const publish = () => publishPrivateFile(reservePrivateFile(path, PROBE.length), path, PROBE);
    if (!publish() || publish())
      return failed(
        "rename over an existing file succeeds here, so two processes may overwrite each other",
        OTHER_DISK,
      );
    const withoutLinks = "files can be written; there are no hard links, so each login is a folder";
    return ok(statSync(path).isFile() ? "files can be written and linked" : withoutLinks);
  } catch (error) {
    const code = errorCode(isAgentAuthError(error) ? error.cause : error);
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    return failed(`${home} is not writable (${code ?? error})`, isFull ? "free some disk space" : ELSEWHERE);
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function loginCount(own: number, all: number, profile: string): string {
  const other = all === own ? "" : `, ${all - own} of other profiles`;
  return `${countText(own, "login")} of profile ${quote(profile)}${other}`;
}

interface Problem {
  why: string;
  /** The command that repairs the file or moves it away. */
  remedy: string;
}

function examineFile(path: string, decode: (text: string) => unknown): Problem | "sealed" | "usable" {
  try {
    const text = readPublishedFile(path);
    if (text !== undefined && sealedWith(text) !== undefined) return "sealed";
    if (text !== undefined) decode(text);
    return "usable";
  } catch (error) {
    const aside = moveAway(path, `${path}.broken`);
    if (error instanceof CodecError || error instanceof CipherError)
      return { why: `${path}: ${error.message}`, remedy: aside };
    if (!isAgentAuthError(error)) throw error;
    // Some hints are sentences, and only commands can be joined.
    const isCommand = /^(?:(?:sudo )?ch(?:mod|own)|icacls|takeown) /.test(error.hint ?? "");
    return { why: error.message, remedy: (isCommand && error.hint) || aside };
  }
}

/** The names of our files in a folder; none if the folder does not exist. A token may have any name. */
function filesIn(home: string, folder: string): string[] {
  const path = join(home, folder);
  const isOurs = (name: string) => (folder === "tokens" ? !/\.tmp(?:-[\w-]+)?$/.test(name) : name.endsWith(".json"));
  try {
    // Each of these logins has a folder of its own.
    return readdirSync(path, { recursive: folder === GRANTS, encoding: "utf8" })
      .filter(isOurs)
      .sort();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")) return [];
    throw storeError(`the folder ${path} cannot be read`, error);
  }
}

/** Milliseconds that the keychain may take, including a prompt to the user. */
const KEYCHAIN_CHECK_MS = 5000;

/** Whether the keychain answers, if logins are sealed with a key in it. It may prompt, as it would at the next login. */
export async function checkKeychain(
  store: StoreChoice | undefined,
  keychain: Keychain,
  mayPrompt: boolean,
): Promise<CheckFinding> {
  if (store?.value !== "keyring")
    return skipped("not used: AGENTAUTH_STORE=keyring seals logins with a key in the keychain");
  if (!mayPrompt) return skipped("not checked: the keychain may prompt, and prompts are disabled");
  try {
    return (await keychain.get()) === undefined
      ? ok("answers; the first login creates a key")
      : ok("answers, and has the key for this folder");
  } catch (error) {
    if (!isAgentAuthError(error) || store.fallback !== "file") throw error;
    return warning(`${error.message}: logins are stored unsealed, because of store_fallback`, error.hint);
  }
}
