import type { AgentAuth } from "../api/client.js";
import type { Listing } from "../api/listing.js";
import type { Drift } from "../api/page-numbers.js";
import type { ListOptions, Verdict } from "../api/pages.js";
import type { Device } from "../api/types.js";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { ListFlags, ListKind, OutputFlags } from "./commands/lists.js";
import { checkIdentifier, type Deps, requireScope, serviceOf, settingsOf } from "./context.js";
import { continuationCommand, withHint } from "./continuation.js";
import { buildFilter, type Filter } from "./filters.js";
import type { Io } from "./io.js";
import { nearest } from "./nearest.js";
import { DEVICE, DOMAIN, POOL } from "./output/columns.js";
import type { Format } from "./output/formats.js";
import { printObject } from "./output/object.js";
import { createWriter } from "./output/writer.js";
import type { Settings } from "./settings.js";

const COLUMNS = { pools: POOL, domains: DOMAIN, devices: DEVICE } as const;
const DEVICE_SORT = ["id", "last_seen", "status", "title"];
const DEFAULT_CONCURRENCY = 4;

/** The output format: the flag, else the profile's, else what suits the reader. */
export function formatOf(options: OutputFlags, settings: Settings, io: Io): Format {
  if (options.output) return options.output;
  if (options.json || options.jq !== undefined) return "json";
  return (settings.output?.value as Format | undefined) ?? (io.stdout.isTTY ? "table" : "plain");
}

/** `pools list`, `domains list`, `devices list`. */
export async function runList(kind: ListKind, options: ListFlags, deps: Deps): Promise<undefined> {
  const { io } = deps;
  const settings = settingsOf(options, deps);
  const scopeId = requireScope(kind.scope, settings[kind.scope], `${kind.noun} list`);
  const filter = buildFilter(options, deps.now());
  const sorting = options.sort === undefined ? undefined : parseSort(options.sort, kind.noun);
  const format = formatOf(options, settings, io);
  const writer = createWriter(
    format,
    {
      ...COLUMNS[kind.noun],
      columnsFlag: options.columns,
      noHeader: options.header === false,
      jq: options.jq,
      showSecrets: options.showSecrets,
      csvRaw: options.csvRaw,
      now: deps.now,
    },
    io,
  );
  const service = await serviceOf(options, settings, deps);
  const end: Ending = { yielded: 0, matched: 0, drift: [], verdict: undefined };
  const listing = openListing(service, kind, scopeId, sorting, {
    pageSize: options.pageSize,
    maxItems: filter ? undefined : options.limit,
    concurrency: options.concurrency ?? DEFAULT_CONCURRENCY,
    from: options.offset,
    strict: options.strict,
    signal: deps.signal,
    onDrift: (drift) => end.drift.push(drift),
    onEnd: (verdict) => {
      end.verdict = verdict;
    },
  });
  const progress = io.progress();
  try {
    for await (const page of listing.pages()) {
      end.yielded += page.items.length;
      progress.update(`${kind.noun}: ${end.yielded} of ${page.pagination?.item_count ?? "?"}`);
      const left = filter && options.limit !== undefined ? options.limit - end.matched : Number.POSITIVE_INFINITY;
      const items = filter ? page.items.filter(filter.matches).slice(0, left) : page.items;
      end.matched += items.length;
      await writer.write(items);
      if (items.length >= left) break;
    }
    progress.stop();
    await writer.end();
  } catch (thrown) {
    progress.stop();
    await writer.abort();
    if (!isAgentAuthError(thrown) || thrown.resume === undefined || end.yielded === 0) throw thrown;
    if (options.jq !== undefined && format !== "ndjson") {
      throw withHint(
        thrown,
        "nothing was printed, since --jq sees the whole array: run it again, or item by item with -o ndjson",
      );
    }
    const left = options.limit === undefined ? undefined : options.limit - end.matched;
    throw withHint(thrown, `go on with: ${continuationCommand(deps.argv, thrown.resume, left)}`);
  }
  tellEnd(end, options, filter, deps);
  return undefined;
}

/** `devices get`. */
export async function runGet(options: ListFlags & { id: string }, deps: Deps): Promise<undefined> {
  const settings = settingsOf(options, deps);
  const pool_id = requireScope("pool", settings.pool, "devices get <device_id>");
  if (options.id === "") throw new AgentAuthError("usage", "the device id is empty", { class: "usage" });
  checkIdentifier(options.id, "the device id");
  const service = await serviceOf(options, settings, deps);
  const progress = deps.io.progress();
  progress.update(`looking for ${options.id}`);
  const listOptions = { concurrency: DEFAULT_CONCURRENCY, signal: deps.signal };
  const device = await service.devices.get({ pool_id, id: options.id }, listOptions).finally(() => progress.stop());
  await printObject(deps.io, formatOf(options, settings, deps.io), device, {
    ...DEVICE,
    jq: options.jq,
    showSecrets: options.showSecrets,
    now: deps.now,
  });
  return undefined;
}

interface Ending {
  yielded: number;
  matched: number;
  drift: Drift[];
  verdict: Verdict | undefined;
}

interface SortFlag {
  field: string;
  direction?: "asc" | "desc";
}

function openListing(
  service: AgentAuth,
  { noun }: ListKind,
  id: string,
  sorting: SortFlag | undefined,
  options: ListOptions,
): Listing<Device> {
  // Pools and domains have a part of a device's fields; filters and writers take what is there.
  if (noun === "pools") return service.pools.list({ domain_id: id, ...(sorting && { sorting }) }, options);
  if (noun === "domains") return service.domains.list({ account_id: id, ...(sorting && { sorting }) }, options);
  return service.devices.list({ pool_id: id, ...(sorting && { sorting: sorting as never }) }, options);
}

/** `field`, `field:asc` or `field:desc`; the fields of a device list are known, those of the others are the service's. */
function parseSort(flag: string, noun: ListKind["noun"]): SortFlag {
  const [field = "", direction, ...rest] = flag.split(":");
  const complain = (hint: string) =>
    new AgentAuthError("usage", `--sort ${quote(flag)} is not an order`, { class: "usage", hint });
  if (field === "" || rest.length > 0) throw complain("give a field, with :asc or :desc behind it if you like");
  if (noun === "devices" && !DEVICE_SORT.includes(field)) {
    const meant = nearest(field, DEVICE_SORT);
    throw complain(
      `${meant === undefined ? "" : `did you mean ${meant}? `}devices are sorted by ${DEVICE_SORT.join(", ")}`,
    );
  }
  if (direction === undefined) return { field };
  if (direction !== "asc" && direction !== "desc") throw complain("the direction is asc or desc");
  return { field, direction };
}

function tellEnd(end: Ending, options: ListFlags, filter: Filter | undefined, { io, argv }: Deps): void {
  const { verdict, yielded, matched } = end;
  // The verdict counts from where the list was begun.
  const from = options.offset ?? 0;
  const total = verdict?.expected === undefined ? undefined : from + verdict.expected;
  const shown = `shown ${from > 0 && yielded > 0 ? `${from + 1} to ${from + yielded}` : yielded}`;
  if (filter) {
    const which = verdict ? `${matched} of ${yielded}` : `the first ${matched}`;
    io.say(`${which} match (${filter.flags.join(", ")}: chosen here, after reading)`);
  } else if (verdict?.next !== undefined) {
    io.say(`${shown} of ${total ?? "more"}; go on with: ${continuationCommand(argv, verdict.next, options.limit)}`);
  } else {
    io.verbose(`${shown}${total === undefined ? "" : ` of ${total}`}`);
  }
  if (verdict && verdict.duplicates > 0 && end.drift.length === 0) {
    io.warn(`the service listed ${verdict.duplicates} items twice; each is shown once`);
  }
  const change = end.drift.at(-1);
  if (change) {
    const first = end.drift.find(({ field }) => field === change.field) ?? change;
    const missing =
      verdict?.complete === false && verdict.next === undefined ? "; what was added meanwhile may be missing" : "";
    io.warn(`the list changed while it was read (${change.field} was ${first.from}, then ${change.to})${missing}`);
  }
}
