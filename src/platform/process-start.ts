import { system } from "./system.js";

/** 1970 in the time of Windows, which counts from 1601; milliseconds. */
const WINDOWS_EPOCH_MS = 11_644_473_600_000;

/**
 * When a process started, by the system's own tool: this starts a process, so ask rarely.
 *
 * @returns Unix milliseconds, to the second; undefined where there is no such process, or no answer
 */
export function processStart(pid: number): number | undefined {
  const found = system.name === "win32" ? startOnWindows(pid) : startByPs(pid);
  return Number.isFinite(found) ? found : undefined;
}

function startByPs(pid: number): number {
  const text = system.run("env", ["LC_ALL=C", "TZ=UTC", "ps", "-o", "lstart=", "-p", String(pid)])?.trim();
  return text ? Date.parse(`${text} UTC`) : Number.NaN;
}

function startOnWindows(pid: number): number {
  const command = `(Get-Process -Id ${pid}).StartTime.ToFileTimeUtc()`;
  const text = system.run("powershell.exe", ["-NoProfile", "-NonInteractive", "-Command", command])?.trim();
  return text ? Number(text) / 10_000 - WINDOWS_EPOCH_MS : Number.NaN;
}
