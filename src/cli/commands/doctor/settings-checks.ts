import { existsSync } from "node:fs";
import { checkSetting } from "../../../profile/profile-settings.js";
import { storingToken } from "../../../profile/service-settings.js";
import { configPath } from "../../../profile/settings-file.js";
import { failed, ok, skipped, warning } from "./check.js";
import type { Checks } from "./subject.js";

/** The settings, each with its source. */
export const SETTINGS_CHECKS = {
  "settings file"({ known: { config, problems }, home }) {
    if (problems.file !== undefined) throw problems.file;
    if (home === undefined) return ok("there is none: nothing is set");
    const path = configPath(home.value);
    if (!existsSync(path)) return ok(`${path} does not exist: nothing is set`);
    const names = Object.keys(config.profiles);
    return ok(`${path}, ${names.length === 0 ? "no profiles" : `profiles: ${names.join(", ")}`}`);
  },

  /** Which profile is used, and whether it exists. */
  profile({ known: { settings, problems } }) {
    if (problems.file !== undefined) return skipped("the settings file cannot be used");
    if (problems.profile !== undefined) throw problems.profile;
    return ok(`${settings.profile.value} (${settings.profile.source})`);
  },

  /** Tokens for MCP servers need none. */
  base_url({ known: { settings, problems } }) {
    if (problems.baseUrl !== undefined) throw problems.baseUrl;
    const { baseUrl } = settings;
    if (baseUrl !== undefined) return ok(`${baseUrl.value} (${baseUrl.source})`);
    const hint = "agentauth config set base_url <url>; to try without a service: agentauth demo";
    return skipped("not set: lists need it", hint);
  },

  /** Whether the issuer that credentials are bound to is valid. */
  issuer({ known: { settings } }) {
    const { issuer } = settings;
    if (issuer === undefined) return skipped("not set: each client with a secret or a key has its own binding");
    checkSetting("issuer", issuer.value, issuer.source);
    return ok(`${issuer.value} (${issuer.source})`);
  },

  /** Whether the API token can be read. It is not shown, and every output masks it. */
  api_token({ known: { settings }, context }) {
    const { apiToken, baseUrl } = settings;
    if (apiToken === undefined) {
      const hint = `set AGENTAUTH_API_TOKEN, or store a token: ${storingToken()}`;
      return baseUrl ? warning(`not set for ${baseUrl.value}`, hint) : skipped("not set: lists need it");
    }
    const token = apiToken.read();
    context.redactor.add(token);
    if (token === "") return failed(`the token from ${apiToken.source} is empty`, "agentauth config set api_token -");
    return ok(`can be read (${apiToken.source})`);
  },
} satisfies Checks;
