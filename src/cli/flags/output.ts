import { Option } from "commander";
import type { Format } from "./formats.js";

/** What the output flags of a command say. */
export interface OutputFlags {
  output?: Format;
  json?: boolean;
  jq?: string;
  showSecrets?: boolean;
}

/** `--no-pager`. */
export function pagerOption(): Option {
  return new Option("--no-pager", "print on a terminal without a pager (AGENTAUTH_PAGER, PAGER, less)").helpGroup(
    "Output:",
  );
}
