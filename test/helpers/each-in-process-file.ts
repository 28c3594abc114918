import { afterEach } from "vitest";
import { checkNoNodeProcess } from "./no-node-process.js";

// Only the process layer may start Node. It is a setup file for the same reason as each-file.ts.
afterEach(checkNoNodeProcess);
