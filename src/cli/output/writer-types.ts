/** What every writer of lists and every printer of a single object is, and what it knows. */

import type { Io } from "../io/io.js";
import type { FieldGroup } from "./columns.js";
import type { CellStyle, Column } from "./value.js";

/** Prints a list, a page at a time. */
export interface Writer {
  /** Whether nothing is printed before the list has ended. */
  readonly isDeferred: boolean;
  /**
   * Prints items. Wait for it before the next page: a slow reader slows the listing.
   *
   * @throws `PipeClosed` when the reader closed the pipe
   */
  write(items: readonly object[]): Promise<void>;
  /** Ends a list that is complete. */
  end(): Promise<void>;
  /** Ends a list that is not: what was given is printed, and JSON stays without its closing bracket. */
  abort(): Promise<void>;
}

/** The writer of a format; one without `end` or `abort` has nothing to do there. */
export type FormatWriter = Pick<Writer, "write"> & Partial<Pick<Writer, "end" | "abort">>;

export interface WriterContext {
  io: Io;
  columns: readonly Column[];
  /** The columns of a terminal, the most important first, if some may be left out. */
  screenColumns?: readonly Column[] | undefined;
  /** The paths that `--columns` named, if it was given. */
  paths: readonly string[] | undefined;
  reveal: boolean;
  header: boolean;
  csvRaw: boolean;
  csvBom: boolean;
  /** Whether the rows are few and known together, unlike those of a list of the service. */
  bounded: boolean;
  now: () => number;
}

/** The text of a single object. */
export type ObjectPrinter = (value: object, context: ObjectContext) => string | Promise<string>;

/** What a printer of a single object knows. */
export interface ObjectContext extends Pick<WriterContext, "io" | "reveal" | "now"> {
  /** The parts of the object on a terminal. */
  groups?: readonly FieldGroup[] | undefined;
  /** The object's fields as texts: every one that holds no others. */
  fields(style: CellStyle): ObjectField[];
}

export interface ObjectField {
  path: string;
  text: string;
  /** A number is never a formula. */
  numeric: boolean;
}
