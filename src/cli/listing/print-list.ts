import type { Page } from "../../api/page.js";
import type { Device } from "../../api/types.js";
import { isAgentAuthError, withHint } from "../../errors.js";
import type { Format } from "../flags/formats.js";
import type { ListFlags } from "../flags/list.js";
import { formatOf } from "../output/chosen-format.js";
import type { ColumnSet } from "../output/columns.js";
import { withPager } from "../output/pager.js";
import { createWriter, type Writer } from "../output/writer.js";
import type { CommandContext } from "../runtime/context.js";
import { BRIEF_ITEMS } from "./brief.js";
import { buildFilter, type Filter } from "./filters.js";
import type { ListKind } from "./kinds.js";
import { resumeCommand } from "./resume-command.js";
import { requireScope } from "./scope.js";
import { COLUMNS, documentedValues, openListing, parseSort, readOptions } from "./source.js";
import { type ListEnding, reportEnding, selectMatching } from "./summary.js";

/** `pools list`, `domains list`, `devices list`. */
export async function runList(kind: ListKind, given: ListFlags, context: CommandContext): Promise<undefined> {
  const options = given.brief ? { ...given, limit: BRIEF_ITEMS, columns: shortColumns(COLUMNS[kind.noun]) } : given;
  const settings = context.settings();
  const scopeId = requireScope(kind.scope, settings, `${kind.noun} list`);
  const filter = buildFilter(options, context.now(), documentedValues(kind.noun));
  const sorting = options.sort === undefined ? undefined : parseSort(options.sort, kind.noun);
  const format = formatOf(options, settings, context.io);
  await withPager(context, { ...options, format }, async (paged) => {
    const writer = createWriter(format, { ...COLUMNS[kind.noun], ...writerOptions(options, context) }, paged.io);
    const service = await paged.management();
    const end: ListEnding = { yielded: 0, matched: 0, drift: [], verdict: undefined, left: undefined };
    const listing = openListing(service, kind, scopeId, sorting, {
      ...readOptions(options),
      maxItems: filter ? undefined : options.limit,
      signal: paged.signal,
      onDrift: (drift) => end.drift.push(drift),
      onEnd: (verdict) => {
        end.verdict = verdict;
      },
    });
    await print(listing.pages(), { kind, options, filter, format, writer, end }, paged);
    reportEnding(end, options, filter, paged);
  });
  return undefined;
}

function shortColumns({ columns }: ColumnSet): string {
  return columns.map(({ path }) => path).join(",");
}

/** The output flags as a writer's options. */
export function writerOptions(options: ListFlags, { now }: Pick<CommandContext, "now">) {
  const { columns, header, jq, showSecrets, csvRaw } = options;
  return { columnsFlag: columns, noHeader: header === false, jq, showSecrets, csvRaw, now };
}

interface Printing {
  kind: ListKind;
  options: ListFlags;
  filter: Filter | undefined;
  format: Format;
  writer: Writer;
  end: ListEnding;
}

async function print(
  pages: AsyncIterable<Page<Device>>,
  printing: Printing,
  { io, argv }: CommandContext,
): Promise<void> {
  const { kind, options, filter, writer, end } = printing;
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const progress = io.progress();
  try {
    for await (const page of pages) {
      end.yielded += page.items.length;
      progress.update(`${kind.noun}: ${end.yielded} of ${page.pagination.item_count ?? "?"}`);
      const { items, next } = selectMatching(page, filter, limit - end.matched);
      end.matched += items.length;
      end.left = next;
      await writer.write(items);
      if (next) break;
    }
    progress.stop();
    await writer.end();
  } catch (thrown) {
    progress.stop();
    await writer.abort();
    throw withResume(thrown, printing, argv);
  }
}

/** The error with the command that continues the list, where something was printed and there is one. */
function withResume(thrown: unknown, { options, format, end }: Printing, argv: readonly string[]): unknown {
  if (!isAgentAuthError(thrown) || thrown.resume === undefined || end.yielded === 0) return thrown;
  if (options.jq !== undefined && format !== "ndjson") {
    return withHint(
      thrown,
      "nothing was printed, since --jq sees the whole array: run it again, or item by item with -o ndjson",
    );
  }
  const left = options.limit === undefined ? undefined : options.limit - end.matched;
  return withHint(thrown, `continue with: ${resumeCommand(argv, thrown.resume, left)}`);
}
