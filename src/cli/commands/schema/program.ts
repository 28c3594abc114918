/** The schemas of what commands about the program and the machine print, and of errors. */

import { BOUND_BY } from "../../../oauth/client/client-binding.js";
import { PROFILE_KEYS } from "../../config/file.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { address, flag, integer, type JsonSchema, listOf, oneOf, orNull, record, text } from "./json-schema.js";

const SETTING = record(
  {
    key: { type: "string", examples: Object.keys(PROFILE_KEYS), description: "the setting" },
    value: text("its value; absent where nothing is set"),
    source: text("what decided: a flag, a variable, a profile or the default"),
  },
  { optional: ["value", "source"] },
);

const PROFILE = record(
  {
    name: text("its name"),
    current: flag("whether it is the one that is used"),
    base_url: address("the service's base address"),
    source: text("what made it the one that is used"),
  },
  { optional: ["base_url", "source"] },
);

const BOUND_CLIENT = record({
  client_id: text("the client"),
  issuer: address("the issuer that its secret, key and assertions go to"),
  bound_by: {
    type: "string",
    examples: [...BOUND_BY],
    description: "what bound it: a setting, a flag, an answer at the terminal, or a login",
  },
  bound_at: { type: "string", format: "date-time", description: "since when" },
  profile: text("the profile"),
});

const FORGOTTEN_CLIENT = record({
  client_id: text("the client"),
  removed: flag("whether it was bound to an issuer and is no longer"),
  profile: text("the profile"),
});

const RUNNING = {
  pid: integer("its process"),
  base_url: address("the service's base address"),
  api_token: text("the API token of the made-up service"),
  account_id: text("an account in it"),
  domain_id: text("a domain of that account"),
  pool_id: text("a pool of that domain"),
  mcp_url: address("an MCP server that needs a token"),
};
const SANDBOX = record(
  { ready: { type: "boolean", const: true }, running: flag("whether one runs; the rest is absent if not"), ...RUNNING },
  { optional: ["ready", "running", ...Object.keys(RUNNING)], description: "ready is said by start, running by status" },
);

const MACHINE = record({
  issuer: address("the issuer that knows the clients, for --issuer"),
  client_id: text("a client for --grant client-credentials"),
  client_secret: text("its secret"),
  key_client_id: text("a client that signs in place of a secret"),
  private_key: text("its private key, PEM"),
  key_id: text("the id of that key"),
  workload_client_id: text("the client that the assertion is about"),
  assertion: text("an assertion for --grant jwt-bearer"),
  idp_token_endpoint: address("where the made-up identity provider gives its word, for --grant id-jag"),
  idp_client_id: text("a client of that provider"),
  idp_client_secret: text("its secret"),
  id_token: text("an id token of that provider"),
});

const CHECK = record(
  {
    name: text("what was checked"),
    state: oneOf(["ok", "warning", "failed", "skipped"], "only failed changes the exit code"),
    found: text("what was found"),
    hint: text("the command, flag or setting that helps"),
  },
  { optional: ["hint"] },
);
const DOCTOR = record({
  version: text("the version of agentauth"),
  node: text("the version of Node"),
  platform: text("system, architecture and release"),
  checks: listOf(CHECK, "in the order that they were made"),
  settings: listOf(
    record({
      name: text("the setting"),
      value: orNull(text("its value; null where nothing is set")),
      source: text("what decided"),
    }),
    "every setting in force",
  ),
});

const FLAG = record(
  {
    name: text("as it is typed, such as --output"),
    short: text("its short form, such as -o"),
    type: oneOf(["boolean", "string", "integer", "number", "choice"], "what it takes"),
    value: text("what stands for the value in the help"),
    value_optional: { type: "boolean", const: true },
    choices: listOf({ type: "string" }, "the values that are possible"),
    default: text("what counts without it, in words"),
    env: listOf({ type: "string" }, "environment variables that do the same"),
    repeatable: { type: "boolean", const: true },
    group: text("its heading in the help"),
    description: text("what it does"),
  },
  { optional: ["short", "value", "value_optional", "choices", "default", "env", "repeatable"] },
);
const ARGUMENT = record(
  {
    name: text("its name"),
    required: flag("whether it must be given"),
    variadic: flag("whether it takes every word that is left"),
    description: text("what it is"),
    choices: listOf({ type: "string" }, "the values that are possible"),
  },
  { optional: ["choices"] },
);
const COMMAND = record({
  name: text("as it is typed after agentauth"),
  group: text("its heading in the help"),
  summary: text("what it does, in a line"),
  description: text("what the help says beyond that"),
  usage: text("the whole line"),
  arguments: listOf(ARGUMENT, "in order"),
  flags: listOf(FLAG, "its own; those of the root are understood too"),
  examples: listOf({ type: "string" }, "lines for a POSIX shell"),
  commands: listOf({ $ref: "#/$defs/command" }, "the commands of a group"),
});
const COMMANDS: JsonSchema = {
  ...record({
    schema_version: { const: 1, type: "integer" },
    name: text("the program"),
    version: text("its version"),
    summary: text("what it does, in a line"),
    flags: listOf(FLAG, "what every command understands"),
    commands: listOf({ $ref: "#/$defs/command" }, "in the order of the help"),
    exit_codes: listOf(
      record({ code: integer("the number"), name: text("its class"), meaning: text("when it comes") }),
      "every exit code",
    ),
    environment: listOf(
      record({ name: text("the variable"), about: text("what it does") }),
      "the environment variables that count",
    ),
  }),
  $defs: { command: COMMAND },
};

const ERROR = record({
  error: record(
    {
      code: text("the exact failure"),
      class: {
        type: "string",
        examples: Object.keys(EXIT_CODES),
        description: "its kind, which decides the exit code",
      },
      message: text("what happened"),
      hint: text("the command or flag that helps"),
      retryable: flag("whether the same again may succeed"),
      exit_code: integer("with which the command ends"),
      status: integer("the HTTP status, where one came"),
      request_id: text("the service's name for the request"),
      url: text("what was asked, without its query"),
      resume: integer("the offset of the first item that was not printed"),
      retry_after: integer("seconds that the server asked to wait before it is asked again"),
    },
    { optional: ["hint", "status", "request_id", "url", "resume", "retry_after"] },
  ),
});

/** By the names of the types. */
export const PROGRAM_SCHEMAS = {
  doctor: DOCTOR,
  setting: SETTING,
  profile: PROFILE,
  client: BOUND_CLIENT,
  "client-forgotten": FORGOTTEN_CLIENT,
  sandbox: SANDBOX,
  machine: MACHINE,
  commands: COMMANDS,
  error: ERROR,
} as const;
