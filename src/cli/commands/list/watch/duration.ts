import { InvalidArgumentError } from "commander";

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };
const LONGEST_S = 86_400;

/** A parser for seconds, or `5s`, `2m`, `1h`, of at least one second. @returns milliseconds */
export function duration(value: string): number {
  const [, digits = "", unit = "s"] = /^(\d+(?:\.\d+)?)([smh])?$/.exec(value) ?? [];
  const seconds = Number(digits) * (UNITS[unit] ?? 1);
  if (digits === "" || !(seconds >= 1) || seconds > LONGEST_S) {
    throw new InvalidArgumentError("must be a time such as 5s, 2m or 30 (seconds), at least 1s and at most 24h");
  }
  return seconds * 1000;
}

/** Milliseconds as text: `5s`, `2m`. */
export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}
