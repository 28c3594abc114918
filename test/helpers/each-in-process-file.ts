import { afterEach } from "vitest";
import { checkNoNodeProcess } from "./no-node-process.js";

// Only the process layer may start Node. It is a setup file for the same reason as each-file.ts.
afterEach(checkNoNodeProcess);

// A server of the MCP SDK 1.x replaces these globals, and the files of a worker share them: a client of the SDK in a
// later file would not recognize a response of fetch.
const NATIVE = Symbol.for("agentauth.test.native");
const shared = globalThis as { [NATIVE]?: Pick<typeof globalThis, "Request" | "Response"> };
shared[NATIVE] ??= { Request: globalThis.Request, Response: globalThis.Response };
for (const [name, value] of Object.entries(shared[NATIVE]))
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
