// Generated from src/cli/commands/*/command.ts by scripts/generate.mjs. Do not edit.

import { command as apiCommand } from "./api/command.js";
import { command as brokerCommand } from "./broker/command.js";
import { command as clientCommand } from "./client/command.js";
import { command as commandsCommand } from "./commands/command.js";
import { command as completionCommand } from "./completion/command.js";
import { command as configCommand } from "./config/command.js";
import { command as demoCommand } from "./demo/command.js";
import { command as discoverCommand } from "./discover/command.js";
import { command as doctorCommand } from "./doctor/command.js";
import { command as exchangeCommand } from "./exchange/command.js";
import { command as execCommand } from "./exec/command.js";
import { command as helpCommand } from "./help/command.js";
import { command as introspectCommand } from "./introspect/command.js";
import { command as listCommand } from "./list/command.js";
import { command as loginCommand } from "./login/command.js";
import { command as logoutCommand } from "./logout/command.js";
import { command as mcpCommand } from "./mcp/command.js";
import { command as profileCommand } from "./profile/command.js";
import { command as reportCommand } from "./report/command.js";
import { command as requestCommand } from "./request/command.js";
import { command as sandboxCommand } from "./sandbox/command.js";
import { command as schemaCommand } from "./schema/command.js";
import { command as statusCommand } from "./status/command.js";
import { command as storeCommand } from "./store/command.js";
import { command as tokenCommand } from "./token/command.js";

export const COMMANDS = [
  apiCommand,
  brokerCommand,
  clientCommand,
  commandsCommand,
  completionCommand,
  configCommand,
  demoCommand,
  discoverCommand,
  doctorCommand,
  exchangeCommand,
  execCommand,
  helpCommand,
  introspectCommand,
  listCommand,
  loginCommand,
  logoutCommand,
  mcpCommand,
  profileCommand,
  reportCommand,
  requestCommand,
  sandboxCommand,
  schemaCommand,
  statusCommand,
  storeCommand,
  tokenCommand,
] as const;

export const LISTS = [
  apiCommand,
  listCommand,
  reportCommand,
] as const;

export const TOKENS = [
  brokerCommand,
  discoverCommand,
  exchangeCommand,
  execCommand,
  introspectCommand,
  loginCommand,
  logoutCommand,
  mcpCommand,
  requestCommand,
  statusCommand,
  tokenCommand,
] as const;

export const SETTINGS = [
  configCommand,
  profileCommand,
] as const;
