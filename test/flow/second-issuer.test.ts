import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openMcp } from "../../src/mcp/client.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/memory.js";
import { terminalLogin } from "../../src/login/terminal.js";
import { freePort } from "../login/support.js";
import { type CliResult, runCli, temporaryFolder } from "../helpers/cli.js";
import { DEMO_SCOPE, type DemoRequest, type DemoServers, startDemoProvider } from "../helpers/demo-provider.js";
