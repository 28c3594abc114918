import { SERVER_SHAPES } from "#vendors";
import { usageError } from "../../../errors.js";
import { findNearest } from "../../../http/suggest.js";
import { quote } from "../../../redact.js";
import type { ServerShape } from "../../../sandbox/vendors/shape.js";
import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";
import { rowColumns } from "../../output/columns.js";
import { printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { loginCommandOf } from "./vendor-command.js";

/** A recorded server, as `sandbox vendors -o json` prints it. */
interface VendorRow {
  /** The value of --like. */
  id: string;
  /** The vendor or the software. */
  title: string;
  /** What is special. */
  about: string;
  /** The date of the record; absent where none is public. */
  date?: string;
  /** The public record; absent where none is known. */
  source?: string;
  /** Whether `agentauth login` works without flags. */
  by_default: boolean;
  /** The command that logs in at the real server; absent where none does. */
  command?: string;
  /** Why no command logs in. */
  refused?: string;
}

const VENDORS = rowColumns(
  [
    { path: "id", header: "VENDOR", kind: "name" },
    { path: "date", header: "RECORDED" },
    { path: "by_default", header: "DEFAULT", kind: "bool" },
    { path: "command", header: "COMMAND" },
  ],
  [
    { path: "title", header: "TITLE" },
    { path: "source", header: "SOURCE" },
    { path: "about", header: "ABOUT" },
  ],
);

/** `sandbox vendors`. */
export async function runVendors(options: GlobalFlags & OutputFlags, context: CommandContext): Promise<undefined> {
  await printRows(SERVER_SHAPES.map(rowOf), VENDORS, options, context);
}

/** Checks the value of `--like`. @throws AgentAuthError `usage` */
export function checkVendor(id: string): void {
  const ids = SERVER_SHAPES.map((shape) => shape.id);
  if (ids.includes(id)) return;
  throw usageError(
    `--like ${quote(id)} is not a recorded server`,
    `the nearest names are ${findNearest(id, ids).join(", ")}; all of them: agentauth sandbox vendors`,
  );
}

function rowOf(shape: ServerShape): VendorRow {
  const { id, title, about, date, source, byDefault, refused } = shape;
  const command = loginCommandOf(shape);
  return {
    id,
    title,
    about,
    ...(date !== undefined && { date }),
    ...(source !== undefined && { source }),
    by_default: byDefault,
    ...(command !== undefined && { command }),
    ...(refused !== undefined && { refused }),
  };
}
