#!/usr/bin/env node
"use strict";
const { main } = require("../dist/cli/main.cjs");

// The code of a process that ends before its command has.
process.exitCode = 13;
main(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
