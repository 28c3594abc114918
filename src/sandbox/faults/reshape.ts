import type { Fault } from "./faults.js";

/** A list response whose fields faults change. */
interface LooseEnvelope {
  [field: string]: unknown;
  pagination: Record<string, unknown> & { page_offset: number; page_size: number };
  summaries: Record<string, unknown>[];
}

// Escape sequences, bidi controls, invisible characters, line breaks and a spreadsheet formula.
const HOSTILE_TITLES: readonly string[] = [
  "\u001b[31mred\u001b[0m\u001b]0;title\u0007",
  "\u001b]52;c;Y2FsYw==\u0007clipboard",
  "\u001b]8;;https://evil.example/\u001b\\link\u001b]8;;\u001b\\",
  "admin\u202egnp.exe",
  "\u2066isolated\u2069\u061c\u200b\u200d\u2060\ufeff",
  "nul\u0000bell\u0007back\b\b\bdel\u007f",
  "\u009b2J\u0090c1\u009c",
  "line one\r\nerror: line two\u2028three\u2029four",
  "tag\u{e0041}\u{e007f}",
  `zalgo${"\u0301".repeat(1000)}`,
  '=HYPERLINK("https://evil.example")',
  "lone surrogate \ud800",
];

const DEFAULT_MISSING = ["title", "last_seen", "dynamic_client_details"];

type Edit = (body: LooseEnvelope, fault: Fault) => void;

const EDITS: { [K in Fault["kind"]]?: (body: LooseEnvelope, fault: Fault & { kind: K }) => void } = {
  "stuck-offset": ({ pagination }) => {
    pagination["next_page_offset"] = pagination.page_offset;
  },
  "cycling-offset": ({ pagination }) => {
    pagination["next_page_offset"] = Math.max(0, pagination.page_offset - pagination.page_size);
  },
  "bad-offset": ({ pagination }, { value }) => {
    pagination["next_page_offset"] = value;
  },
  "omit-pagination": ({ pagination }) => {
    // Omitted when the body is serialised, so that other faults can still change it.
    pagination["toJSON"] = () => undefined;
  },
  "unknown-enum": ({ summaries }) => {
    for (const summary of summaries) {
      summary["status"] = "paused";
      if ("session_type" in summary) summary["session_type"] = "quantum";
    }
  },
  "extra-fields": (body) => {
    const extra = { nested: [1, null, { deep: true }] };
    for (const part of [body, body.pagination, ...body.summaries]) part["x_undocumented"] = extra;
  },
  "missing-fields": ({ summaries }, { fields = DEFAULT_MISSING }) => {
    for (const summary of summaries) for (const field of fields) delete summary[field];
  },
  "hostile-text": ({ summaries }, { text }) => {
    for (const [index, summary] of summaries.entries()) {
      summary["title"] = text ?? HOSTILE_TITLES[index % HOSTILE_TITLES.length];
    }
  },
};

/** Changes a list response in place as the faults require. */
export function reshape(envelope: object, faults: readonly Fault[]): void {
  for (const fault of faults) (EDITS[fault.kind] as Edit | undefined)?.(envelope as LooseEnvelope, fault);
}
