import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { isAgentAuthError } from "../../../errors.js";
import { decodeStoredLogin } from "../../../oauth/login/login-codec.js";
import { CodecError, decodeClient, decodeGrant } from "../../../oauth/model/codec.js";
import { codeOf, statOf } from "../../../platform/files.js";
import { moveAway } from "../../../platform/shell.js";
import type { EngineReport } from "../../../profile/engine/health.js";
import { homeFolder } from "../../../profile/settings.js";
import type { StoreChoice } from "../../../profile/store-choice.js";
import { quote, shellWord } from "../../../redact.js";
import { sealedWith } from "../../../store/file/cipher.js";
import { fileStore } from "../../../store/file/file.js";
import { GRANTS } from "../../../store/file/file-grants.js";
import { type Keychain, osKeychain } from "../../../store/keychain/keychain.js";
import { accountOf } from "../../../store/keychain/keyring.js";
import { checkPrivateFolder, readPublishedFile } from "../../../store/private/private-file.js";
import { CipherError } from "../../../store/seal/sealing.js";
import { storeError } from "../../../store/store-error.js";
import { countText } from "../../output/value.js";
import { type Check, type CheckFinding, failed, ok, skipped, warning } from "./check.js";
import { type Checks, type Subject, withHome } from "./subject.js";

/** The folders of private files, each with the decoder of its files; a token may be any text. */
const FOLDERS: Readonly<Record<string, (text: string) => unknown>> = {
  [GRANTS]: decodeGrant,
  clients: decodeClient,
  logins: decodeStoredLogin,
  tokens: () => undefined,
};

/** The folders that the store refuses to use if other users can enter them; those in them lie behind them. */
const GUARDED = [GRANTS, "clients", "claims"];

const TEMPORARY = /\.tmp(?:-[\w-]+)?$/;
/** No command takes this long to create and name a file; a younger file may be in use. */
const OLD_MS = 10 * 60_000;
const CLOCK_SLACK_MS = 10_000;

/** The store of logins: its files, its engine or its keychain. */
export const STORE_CHECKS = {
  /** The kind of store, its location, and its number of logins. A folder of secrets that others can enter has failed. */
  async store({ engine, store, known, home: found, env }) {
    if (store === undefined) throw known.problems.store;
    const { value, source, fallback } = store;
    const profile = known.settings.profile.value;
    const name = `${value} (${source})`;
    if (engine) {
      const opened = engine.open().store;
      return ok(`${name}: ${loginCount(await opened.list(), profile)}, in ${opened.location}`);
    }
    if (value === "memory") return ok(`${name}: nothing is stored after a command ends`);
    const home = found?.value ?? homeFolder(env);
    for (const folder of GUARDED) checkPrivateFolder(join(home, folder));
    if (value === "file") return ok(`${name}: ${loginCount(await fileStore(home).list(), profile)}, in ${home}`);
    const summary = `${name}: ${countText(filesIn(home, GRANTS).length, "login")} in ${home}`;
    const lax = `${summary}; without the keychain, logins are stored unsealed (store_fallback of profile ${profile})`;
    return fallback === "file" ? warning(lax, "agentauth config unset store_fallback") : ok(summary);
  },

  /** The facts that the engine reports, and what is wrong with them. */
  engine: ofEngine(({ facts, risks, errors }) => {
    const shown = Object.entries(facts)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
    if (errors.length > 0) return failed(`${errors.join("; ")} (${shown})`, "correct the settings of the engine");
    if (risks.length > 0) return warning(`${risks.join("; ")} (${shown})`, "agentauth store health");
    return ok(shown);
  }),

  /** The difference between this machine's clock and the engine's. */
  "engine clock": ofEngine(({ clock_ahead_ms: aheadMs }) => {
    const difference = `${Math.abs(aheadMs)} ms ${aheadMs < 0 ? "behind" : "ahead of"}`;
    const found = `the clock of this machine is ${difference} the engine's`;
    return Math.abs(aheadMs) < CLOCK_SLACK_MS ? ok(found) : warning(found, "synchronize both clocks");
  }),

  /** Whether the key ring has the keys of all records. An engine that does not answer is no failure of the keys. */
  "key ring": ofEngine(
    ({ current_key: current, keys, keys_in_use: used }) => {
      if (current === null) return warning("store_keys is none: logins are not sealed", "agentauth store keys <path>");
      const uses = used.map(({ key, records }) => `${records} with ${quote(key)}`).join(", ");
      const found = `seals with ${quote(current)}; records: ${uses === "" ? "none" : uses}`;
      if (used.some(({ key }) => !keys.includes(key))) return failed(found, "add the missing keys to store_keys");
      return used.some(({ key }) => key !== current) ? warning(found, "agentauth store reseal") : ok(found);
    },
    () => skipped("the engine does not answer"),
  ),

  keychain: withHome((home, { store, env, noInput }) => {
    const keychain = osKeychain(accountOf(home), { timeoutMs: KEYCHAIN_CHECK_MS, env });
    return checkKeychain(store, keychain, noInput === undefined);
  }),

  /** Whether each stored file can be used: its mode, its owner and its format. */
  files: withHome((home, { store }) => {
    const results = Object.entries(FOLDERS).flatMap(([folder, decode]) =>
      filesIn(home, folder).map((name) => examineFile(join(home, folder, name), decode)),
    );
    const count = countText(results.length, "file");
    const unusable = results.filter((result) => typeof result === "object");
    if (unusable.length > 0) return unusableFinding(unusable, count);
    const sealed = results.filter((result) => result === "sealed").length;
    // Without the key in the keychain, a sealed file cannot be checked.
    if (sealed > 0 && store?.value !== "keyring") {
      const found = `${sealed} of ${count} are sealed, and only the keyring store can open them`;
      return warning(found, "set AGENTAUTH_STORE=keyring");
    }
    const plain = ["clients", GRANTS].flatMap((folder) =>
      filesIn(home, folder).filter((name) => examineFile(join(home, folder, name), () => {}) === "usable"),
    );
    if (store?.value === "keyring" && plain.length > 0) {
      const found = `${plain.length} of ${count} are logins and clients that are not sealed: the next use seals them`;
      return warning(found, "agentauth status --all");
    }
    return ok(
      results.length === 0 ? "none yet" : `${count}, all can be used${sealed > 0 ? ` (${sealed} sealed)` : ""}`,
    );
  }),

  /** The partial files of killed processes. */
  leftovers: withHome((home, { context }) => {
    const now = context.now();
    const old = ["", "claims", ...Object.keys(FOLDERS)]
      .flatMap((folder) => namesIn(join(home, folder)).map((name) => join(home, folder, name)))
      .filter((path) => {
        const stat = TEMPORARY.test(path) ? statOf(path) : undefined;
        return stat?.isFile() === true && now - stat.mtimeMs > OLD_MS;
      });
    if (old.length === 0) return ok("none");
    const shown = old.slice(0, MOST_SHOWN).map(shellWord);
    return warning(`${old.length} temporary files of commands that were killed`, `rm ${shown.join(" ")}`);
  }),
} satisfies Checks;

/** A check of what the engine of the store reports. Default for an engine that does not answer: its error. */
function ofEngine(check: (report: EngineReport) => CheckFinding, withoutAnswer?: () => CheckFinding): Check<Subject> {
  return async ({ engine }) => {
    try {
      return engine && check(await engine.report());
    } catch (error) {
      if (withoutAnswer && isAgentAuthError(error) && error.class === "unavailable") return withoutAnswer();
      throw error;
    }
  };
}

/** The number of logins of a profile, and of the others. */
function loginCount(logins: readonly { profile: string }[], profile: string): string {
  const own = logins.filter((login) => login.profile === profile).length;
  const other = logins.length === own ? "" : `, ${logins.length - own} of other profiles`;
  return `${countText(own, "login")} of profile ${quote(profile)}${other}`;
}

/** The number of files named in one line. */
const MOST_SHOWN = 3;

interface Problem {
  why: string;
  /** The command that repairs the file or moves it away. */
  remedy: string;
}

function unusableFinding(unusable: readonly Problem[], count: string): CheckFinding {
  const shown = unusable.slice(0, MOST_SHOWN);
  const more = unusable.length > shown.length ? `; and ${unusable.length - shown.length} more` : "";
  return failed(
    `${unusable.length} of ${count} cannot be used: ${shown.map(({ why }) => why).join("; ")}${more}`,
    shown.map(({ remedy }) => remedy).join(" && "),
  );
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
  const isOurs = (name: string) => (folder === "tokens" ? !TEMPORARY.test(name) : name.endsWith(".json"));
  return namesIn(join(home, folder)).filter(isOurs);
}

function namesIn(folder: string): string[] {
  try {
    // Each of these logins has a folder of its own.
    return readdirSync(folder, { recursive: basename(folder) === GRANTS, encoding: "utf8" }).sort();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error) ?? "")) return [];
    throw storeError(`the folder ${folder} cannot be read`, error);
  }
}

/** Milliseconds that the keychain may take, including a prompt to the user. */
const KEYCHAIN_CHECK_MS = 5000;

/**
 * Whether the keychain answers, if logins are sealed with a key in it. The keychain may prompt the user to unlock it, as
 * it would at the next login.
 *
 * @param store the chosen store; undefined if the choice is invalid
 * @param mayPrompt whether the user may be prompted
 * @throws `AgentAuthError` `store_failed` if the keychain cannot be used and there is no fallback
 */
export async function checkKeychain(
  store: StoreChoice | undefined,
  keychain: Keychain,
  mayPrompt: boolean,
): Promise<CheckFinding> {
  if (store?.value !== "keyring")
    return skipped("not used: AGENTAUTH_STORE=keyring seals logins with a key in the keychain");
  if (!mayPrompt) return skipped("not checked: the keychain may prompt, and --no-input is set");
  try {
    return (await keychain.get()) === undefined
      ? ok("answers; the first login creates a key")
      : ok("answers, and has the key for this folder");
  } catch (error) {
    if (!isAgentAuthError(error) || store.fallback !== "file") throw error;
    return warning(`${error.message}: logins are stored unsealed, because of store_fallback`, error.hint);
  }
}
