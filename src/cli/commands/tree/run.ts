import type { Domain } from "../../../api/types.js";
import { AgentAuthError, isAgentAuthError, usageError } from "../../../errors.js";
import type { Format, Settings } from "../../../profile/settings.js";
import { escapeText, quote } from "../../../redact.js";
import type { GlobalFlags } from "../../flags/global.js";
import { DOCUMENT_FORMATS, type OutputFlags } from "../../flags/output.js";
import type { OutStream } from "../../io/io.js";
import { textWidth } from "../../io/width.js";
import { partialError, sayBrief } from "../../listing/resume-command.js";
import { requireScope, unusableHint } from "../../listing/scope.js";
import { isolate } from "../../output/layout.js";
import { withPager } from "../../output/pager.js";
import { formatOf, printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { readBriefTree, type UnusableList, Walk } from "./walk.js";

const FORMATS: readonly Format[] = DOCUMENT_FORMATS;

/** `tree`: prints domains, pools and devices as they arrive, so that a large account shows at once. */
export async function runTree(options: TreeOptions, context: CommandContext): Promise<undefined> {
  const settings = context.settings();
  const account = requireScope("account", settings, "tree");
  const isFormatOpen = options.output === undefined && settings.output === undefined;
  const format = options.brief && isFormatOpen ? "json" : formatOf(options, settings, context.io);
  if (!FORMATS.includes(format)) {
    throw usageError(`tree does not support the format ${quote(format)}`, `formats of a tree: ${FORMATS.join(", ")}`);
  }
  if (options.brief && (format === "table" || format === "plain")) {
    throw usageError(
      `tree --brief does not support the format ${quote(format)}`,
      "leave --brief out: these formats print at most 5 devices of a pool; its formats are json, ndjson, yaml",
    );
  }
  const service = await context.management();
  const walk = new Walk(service, context, options.concurrency);
  await withPager(context, { ...options, format }, async (paged) => {
    if (format === "table" || format === "plain") {
      const domains = await walk.domains(account);
      await printLines({ account, domains, limit: options.limit ?? 5, format }, walk, paged).catch(endedEarly);
    } else if (options.brief) {
      const { tree, notice } = await readBriefTree(walk, account, settings);
      await printObject(format, { account_id: account, ...tree }, options, paged);
      sayBrief(paged.io, notice);
    } else {
      const tree = { account_id: account, domains: await walk.whole(account, options.limit) };
      await printObject(format, tree, options, paged);
    }
  });
  if (walk.unusable.length > 0) throw unusableItems(walk.unusable, settings);
}

/** The error of a tree in which lists have items without an id: everything else was printed. */
function unusableItems(lists: readonly UnusableList[], settings: Settings): AgentAuthError {
  const [first, ...others] = lists;
  if (first === undefined) throw new TypeError("no list has items without an id");
  const { noun, scope, id, error } = first;
  const hint = unusableHint(noun, scope, id, settings);
  const more = others.length === 0 ? "" : `; ${others.length} more lists of the tree have such items`;
  const { url, unusable } = error;
  return new AgentAuthError("unusable_items", error.message + more, { class: "partial", hint, url, unusable });
}

/** Reports that the printed tree is incomplete. */
function endedEarly(thrown: unknown): never {
  // One of the store is about the output.
  if (!isAgentAuthError(thrown) || thrown.class === "aborted" || thrown.class === "store") throw thrown;
  const hint = "run the command again; agentauth devices list reads one pool and can continue where it stopped";
  throw partialError(thrown, "the tree ended early", hint);
}

interface Tree {
  account: string;
  domains: readonly Domain[];
  /** Devices to show of each pool. */
  limit: number;
  format: Format;
}

async function printLines(
  { account, domains, limit, format }: Tree,
  walk: Walk,
  context: CommandContext,
): Promise<void> {
  const { stdout } = context.io;
  const print = (line: Line, open: readonly boolean[]) =>
    stdout.write(format === "plain" ? plainLine(line) : treeLine(line, open, stdout));
  await print({ depth: 0, last: true, kind: "account", id: account, title: "", note: "" }, []);
  for (const [d, domain] of domains.entries()) {
    const lastDomain = d === domains.length - 1;
    await print(lineOf(1, lastDomain, "domain", domain, domain.status), []);
    const pools = await walk.pools(domain.id);
    for (const [p, pool] of pools.entries()) {
      const lastPool = p === pools.length - 1;
      const { items, total } = await walk.devices(pool.id, limit);
      const known =
        total === undefined ? "number of devices unknown" : `${total} ${total === 1 ? "device" : "devices"}`;
      const note = [pool.status, known].filter(Boolean).join(", ");
      await print(lineOf(2, lastPool, "pool", pool, note), [!lastDomain]);
      const more = limit > 0 ? (total ?? Number.POSITIVE_INFINITY) - items.length : 0;
      for (const [index, device] of items.entries()) {
        const note = [device.session_type, device.status].filter(Boolean).join(", ");
        await print(lineOf(3, more === 0 && index === items.length - 1, "device", device, note), [
          !lastDomain,
          !lastPool,
        ]);
      }
      if (more > 0 && format === "table") {
        await stdout.write(
          `${drawBranches([!lastDomain, !lastPool], true)}… and ${total === undefined ? "" : `${more} `}more (--limit)\n`,
        );
      }
    }
  }
}

function lineOf(
  depth: number,
  last: boolean,
  kind: string,
  item: { id?: string | null; title?: string | null },
  note: string | null | undefined,
): Line {
  return { depth, last, kind, id: item.id ?? "", title: item.title ?? "", note: note ?? "" };
}

function plainLine({ kind, id, title, note }: Line): string {
  return `${[kind, id, title, note].map(escapeText).join("\t")}\n`;
}

/** Options of `tree`. */
export interface TreeOptions extends GlobalFlags, OutputFlags {
  limit?: number;
  /** The beginning with few fields. */
  brief?: true;
  concurrency?: number;
  /** `false` for `--no-pager`. */
  pager?: boolean;
}

/** One line of the tree. */
interface Line {
  depth: number;
  last: boolean;
  kind: string;
  id: string;
  title: string;
  note: string;
}

/** A word, and what is printed for it. */
interface Word {
  text: string;
  painted: string;
  /** Blanks before it. */
  gap: number;
}

/** A line of the tree; on a terminal it continues between two words, beside the branches. */
export function treeLine(line: Line, open: readonly boolean[], { isTTY, columns, colors }: OutStream): string {
  const isRoot = line.depth === 0;
  const words = (text: string, paint: (word: string) => string): Word[] =>
    escapeText(text)
      .split(" ")
      .map((word, index) => ({ text: word, painted: paint(word), gap: index === 0 ? 2 : 1 }));
  const shown = isRoot ? `account ${line.id}` : line.title || line.id;
  const all = [
    ...words(shown, isTTY ? isolate : (word) => word),
    ...(isRoot || line.title === "" ? [] : words(line.id, colors.dim)),
    ...(line.note === "" ? [] : words(`(${line.note})`, colors.dim)),
  ];
  const first = isRoot ? "" : drawBranches(open, line.last);
  const further = isRoot ? "" : `${drawStems(open)}${line.last ? "    " : "│   "}`;
  const lines: string[] = [];
  let text = first;
  let used = textWidth(first);
  let isStart = true;
  for (const { text: word, painted, gap } of all) {
    const blanks = isStart ? 0 : gap;
    if (isTTY && !isStart && used + blanks + textWidth(word) > columns) {
      lines.push(text);
      text = `${further}  ${painted}`;
      used = textWidth(further) + 2 + textWidth(word);
    } else {
      text += " ".repeat(blanks) + painted;
      used += blanks + textWidth(word);
    }
    isStart = false;
  }
  return `${[...lines, text].join("\n")}\n`;
}

/** The lines to the left of an entry, and the one that leads to it. */
function drawBranches(open: readonly boolean[], last: boolean): string {
  return `${drawStems(open)}${last ? "└── " : "├── "}`;
}

function drawStems(open: readonly boolean[]): string {
  return open.map((more) => (more ? "│   " : "    ")).join("");
}
