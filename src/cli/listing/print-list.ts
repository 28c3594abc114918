import { isUnusableItems } from "../../api/pages.js";
import { type AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import type { ListFlags } from "../flags/list.js";
import type { ColumnSet } from "../output/columns.js";
import { chooseFormat, createWriter, type Writer } from "../output/writer.js";
import type { CommandContext } from "../runtime/context.js";
import { buildFilter } from "./filters.js";
import { type ListKind, requireScope, unusableHint } from "./scope.js";
import { COLUMNS, documentedValues, parseSort } from "./source.js";
import { BRIEF_ITEMS, type ListEnding, readList, reportEnding, resumeCommand, type Selection } from "./summary.js";

/** `pools list`, `domains list`, `devices list`. */
export async function runList(kind: ListKind, parsedFlags: ListFlags, context: CommandContext): Promise<undefined> {
  const settings = context.settings();
  const format = chooseFormat(parsedFlags, settings, context.io);
  const options = parsedFlags.brief ? shortForm(parsedFlags, COLUMNS[kind.noun]) : parsedFlags;
  const scopeId = requireScope(kind.scope, settings, `${kind.noun} list`);
  const filter = buildFilter(options, context.now(), documentedValues(kind.noun));
  const sort = options.sort === undefined ? undefined : parseSort(options.sort, kind.noun);
  const writer = createWriter(format, { ...COLUMNS[kind.noun], ...writerOptions(options, context) }, context.io);
  const service = await context.management();
  const request = { kind, scopeId, sort, filter, options };
  const { end, selections } = readList(service, request, context);
  await print(selections, { kind, scopeId, parsedFlags, writer, end }, context);
  const isJson = format === "json" || format === "ndjson";
  reportEnding(end, parsedFlags, filter, context, parsedFlags.brief && { columns: options.columns ?? "", isJson });
}

function shortForm(parsedFlags: ListFlags, { columns }: ColumnSet): ListFlags {
  const { limit = BRIEF_ITEMS, columns: named = columns.map(({ path }) => path).join(",") } = parsedFlags;
  return { ...parsedFlags, limit, columns: named };
}

function writerOptions(options: ListFlags, { now }: Pick<CommandContext, "now">) {
  const { columns, header, jq, showSecrets, csvRaw, csvBom } = options;
  return { columnsFlag: columns, noHeader: header === false, jq, showSecrets, csvRaw, csvBom, now };
}

interface Printing {
  kind: ListKind;
  scopeId: string;
  parsedFlags: ListFlags;
  writer: Writer;
  end: ListEnding;
}

async function print(selections: AsyncIterable<Selection>, printing: Printing, context: CommandContext): Promise<void> {
  const { writer } = printing;
  try {
    for await (const { items } of selections) await writer.write(items);
    await writer.end();
  } catch (thrown) {
    if (isUnusableItems(thrown)) {
      // All others were printed, so that the output is whole.
      await writer.end();
      throw withHint(thrown, hintForUnusable(thrown, printing, context));
    }
    await writer.abort();
    throw withResume(thrown, printing, context.argv);
  }
}

function hintForUnusable({ resume }: AgentAuthError, printing: Printing, { argv, settings }: CommandContext): string {
  const { kind, scopeId, parsedFlags } = printing;
  const raw = unusableHint(kind.noun, kind.scope, scopeId, settings());
  return resume === undefined ? raw : `continue with: ${resumeCommand(argv, resume, parsedFlags.limit)}; ${raw}`;
}

/** The error with the command that continues the list, where something was printed and there is one. */
function withResume(thrown: unknown, { parsedFlags, writer, end }: Printing, argv: readonly string[]): unknown {
  if (!isAgentAuthError(thrown) || thrown.resume === undefined || end.yielded === 0) return thrown;
  if (writer.isDeferred)
    return withHint(
      thrown,
      "nothing was printed, since --jq sees the whole array: run it again, or page by page with '.[] | …'",
    );
  const remaining = parsedFlags.limit === undefined ? undefined : parsedFlags.limit - end.matched;
  return withHint(thrown, `continue with: ${resumeCommand(argv, thrown.resume, remaining)}`);
}
