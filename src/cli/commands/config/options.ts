import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";

/** Options of the `config` commands. */
export interface ConfigOptions extends GlobalFlags, OutputFlags {
  key: string;
  value: string;
  /** Whether the line of the settings file is printed too. */
  showOrigin?: boolean;
}
