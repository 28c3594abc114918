/** `--jq`: a jq expression over the output, by the optional package jq-wasm. */

import { createRequire } from "node:module";
import { AgentAuthError, errorMessage, usageError } from "../../errors.js";
import { escapeText } from "../../redact.js";
import type { Io } from "../io/io.js";
import type { OutputFormat } from "./formats.js";
import { escapeJson, isRecord, stringifyItems } from "./value.js";
import type { FormatWriter, Writer, WriterContext } from "./writer-types.js";

/** The part of jq-wasm that we use: every output of an expression over JSON texts. */
export interface Jq {
  json(input: string, expression: string): unknown[];
}

export type LoadJq = () => Promise<Jq>;

// The release is named because the registry's default one takes quadratic time.
const INSTALL = "npm install jq-wasm@3.0.0-jq-1.8.2 (add --global if agentauth is installed globally)";

// Not at once: every command that prints a list imports this module.
const loader = () => createRequire(import.meta.url);

/** Whether the optional package is installed. */
export function isJqInstalled(): boolean {
  try {
    loader().resolve("jq-wasm");
    return true;
  } catch {
    return false;
  }
}

// With import() Node would load its loader of ES modules for this package alone.
const loadJqWasm: LoadJq = async () => (loader()("jq-wasm") as typeof import("jq-wasm")).loadJq();

/**
 * Runs the expression on each item (`mode` "item"), on each page where that gives the same, or once on the whole array when
 * the list has ended; never on an aborted array, which has no closing bracket where a `map(…)` makes one. As JSON, strings are
 * printed without quotes, with line breaks and tabs, and other control characters escaped; other values as JSON on one line.
 *
 * @param rows prints the items that the expression selects, where the format is not JSON
 * @throws {@link AgentAuthError} `usage` when jq-wasm is not installed, with jq's error about the expression, or for what is no
 * item; `jq_failed` when jq itself fails, or would for lack of memory
 */
export function jqWriter(
  expression: string,
  mode: OutputFormat["jq"],
  { io, paths, reveal }: WriterContext,
  rows?: Promise<FormatWriter>,
): FormatWriter & Pick<Writer, "isDeferred"> {
  const filter = jqFilter(expression);
  const hasHalt = /\bhalt/.test(expression);
  const each = mode === "item";
  const isMap = MAP.test(expression) && !hasHalt;
  const isByPage = each || (OF_ITEMS.test(expression) && !hasHalt) || (isMap && rows !== undefined);
  const print = async (results: readonly unknown[]) =>
    rows === undefined ? printResults(results, io) : (await rows).write(results.flat().map(requireItem));
  const collected: string[] = [];
  let [bytes, open] = [0, "["];
  // --columns selects from the items that are printed.
  const style = { reveal, paths: rows === undefined ? paths : undefined };
  return {
    isDeferred: !isByPage && !isMap,
    async write(items) {
      if (items.length === 0) return;
      const text = stringifyItems(items, each ? "\n" : ",", style);
      if (isByPage) return print(await filter(each ? text : `[${text}]`));
      if (isMap) {
        const [array = []] = await filter(`[${text}]`);
        const mapped = escapeJson(JSON.stringify(array)).slice(1, -1);
        if (mapped === "") return;
        await io.stdout.write(`${open}${mapped}`);
        open = ",";
        return;
      }
      bytes += Buffer.byteLength(text);
      if (bytes > MAX_ARRAY_BYTES) throw tooLargeError();
      collected.push(text);
    },
    async end() {
      // An invalid expression is an error for an empty list too.
      const results = await filter(() => (each ? "" : `[${collected.join(",")}]`));
      await (open === "[" ? print(results) : io.stdout.write("]\n"));
      await (await rows)?.end?.();
    },
    abort: async () => (await rows)?.abort?.(),
  };
}

function requireItem(result: unknown): object {
  if (isRecord(result)) return result;
  const found = result === null ? "null" : `a ${typeof result}`;
  throw usageError(
    `--jq returned ${found}, and only -o json and -o ndjson print other values than items`,
    "select items, as in '.[] | select(.status == \"revoked\")', or use -o json",
  );
}

/** The memory of jq is at an end between 50,000 and 70,000 devices of a kilobyte, after seconds and 800 MB. */
const MAX_ARRAY_BYTES = 48 * 1024 * 1024;
/** A path of each item, alone or before a pipe: what comes after that sees one item. */
const OF_ITEMS = /^\s*\.\[\](?:\.[A-Za-z_]\w*|\.?"[^"\\]*"|\[(?:\d*|"[^"\\]*")\]|\?)*\s*(?:$|\|(?!=))/;

const inParentheses = (depth: number): string =>
  `(?:[^()"#]|"[^"\\\\]*"${depth > 0 ? `|\\(${inParentheses(depth - 1)}\\)` : ""})*`;
/** One `map(…)`: the arrays that it makes of the parts of an array are the parts of its own. */
const MAP = new RegExp(`^\\s*map\\(${inParentheses(5)}\\)\\s*$`);

function tooLargeError(): AgentAuthError {
  const message = `--jq: the list is too long for an expression over all of it: more than ${MAX_ARRAY_BYTES / 1024 ** 2} MB`;
  const hint = "make the expression '.[] | …' or one 'map(…)', or use -o ndjson --jq '…': each item by itself";
  return new AgentAuthError("jq_failed", message, { class: "store", hint });
}

/** The expression as a function from JSON texts, or what makes them, to its outputs. */
export function jqFilter(
  expression: string,
  load: LoadJq = loadJqWasm,
): (input: string | (() => string)) => Promise<unknown[]> {
  let loading: Promise<Jq> | undefined;
  return async (input) => {
    loading ??= load().catch((cause) => {
      throw loadError(cause);
    });
    const jq = await loading;
    try {
      const text = typeof input === "string" ? input : input();
      // jq would read an expression that starts with "-" as an option.
      return withoutConsole(() => jq.json(text, expression.startsWith("-") ? ` ${expression}` : expression));
    } catch (error) {
      throw isOfExpression(error) ? filterError(error) : jqFailed(error);
    }
  };
}

export async function printResults(results: readonly unknown[], io: Io): Promise<void> {
  const lines = results.map((value) =>
    typeof value === "string" ? showText(value) : escapeJson(JSON.stringify(value)),
  );
  if (lines.length > 0) await io.stdout.write(`${lines.join("\n")}\n`);
}

/** Keeps line breaks and tabs (`@tsv`), and escapes the rest, since a pipe may end on a terminal too. */
function showText(text: string): string {
  return text.replace(/[^\n\t]+/g, escapeText);
}

/** jq reports on the console that it aborts. */
function withoutConsole<T>(work: () => T): T {
  const { error } = console;
  console.error = () => {};
  try {
    return work();
  } finally {
    console.error = error;
  }
}

function loadError(cause: unknown): AgentAuthError {
  const { code } = cause as { code?: unknown };
  if (code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND")
    return usageError("--jq needs the optional package jq-wasm, which is not installed", INSTALL, cause);
  const message = `--jq: the optional package jq-wasm cannot be loaded: ${escapeText(errorMessage(cause))}`;
  return new AgentAuthError("jq_failed", message, { class: "store", hint: INSTALL, cause });
}

/** Whether jq ran, and refused the expression or its input: not where memory is at an end. */
function isOfExpression(error: unknown): boolean {
  return error instanceof Error && error.name === "JqError" && !/allocate memory|out of memory/i.test(error.message);
}

function jqFailed(cause: unknown): AgentAuthError {
  const message = `--jq: jq failed, perhaps for lack of memory: ${escapeText(errorMessage(cause))}`;
  const hint = "-o ndjson --jq '…' runs on each item, in less memory";
  return new AgentAuthError("jq_failed", message, { class: "store", hint, cause });
}

const OF_ARRAY = /Cannot index array with/;
const EACH = "split the array with .[] as in '.[] | .id'; a list is one array, or with -o ndjson item by item";

function filterError(error: unknown): AgentAuthError {
  const said = errorMessage(error);
  return usageError(
    `--jq: ${escapeText(said.replace(/^jq: error(?: \(at [^)]*\))?: /, "").split("\n")[0] ?? "")}`,
    OF_ARRAY.test(said) ? EACH : "the syntax is that of jq 1.8: https://jqlang.org/manual/v1.8/",
    error,
  );
}
