import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";

/** What a `config` command was told. */
export interface ConfigOptions extends GlobalFlags, OutputFlags {
  key: string;
  value: string;
  /** Whether the line of the settings file is told too. */
  showOrigin?: boolean;
}
