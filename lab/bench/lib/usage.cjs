// Preloaded into every measured process: at its exit, what the whole process took goes to file descriptor 3.
"use strict";
const { readFileSync, writeSync } = require("node:fs");

/** Peak resident memory in KiB. The kernel's own count, since getrusage also knows the peak of the parent before exec. */
function peak() {
  try {
    return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "latin1"))[1]);
  } catch {
    return process.resourceUsage().maxRSS;
  }
}

process.on("exit", (code) => {
  const { user, system } = process.cpuUsage();
  const usage = { code, cpuMs: (user + system) / 1000, wallMs: performance.now(), peakKiB: peak() };
  writeSync(3, JSON.stringify(usage));
});
