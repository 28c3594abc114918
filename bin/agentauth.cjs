#!/usr/bin/env node
"use strict";

// The code of a process that ends before its command has.
process.exitCode = 13;
let main;
try {
  ({ main } = require("../dist/cli/main.cjs"));
} catch (error) {
  if (error.code !== "MODULE_NOT_FOUND") throw error;
  const root = __dirname.replace(/[\\/]bin$/, "");
  process.stderr.write(`error: agentauth is not built: dist/ is missing or incomplete in ${root}\nhint: npm ci\n`);
  process.exit(1);
}
main(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
