import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";

/** Options of the `sandbox` commands. */
export interface SandboxCommandOptions extends Omit<GlobalFlags, "output"> {
  output?: "text" | "json";
  json?: boolean;
  host?: string;
  allowNonLoopback?: boolean;
  allowOrigin?: string[];
  port?: number;
  like?: string;
  seed?: number;
  accounts?: number;
  domains?: number;
  pools?: number;
  devices?: number;
  latency?: number;
  fault?: string[];
  faults: string[];
  clear?: boolean;
  metadata?: "appended" | "rfc8414" | "both";
  autoApprove?: boolean;
  iss?: boolean;
  deviceFlow?: boolean;
  clientMetadataDocuments?: boolean;
  machineGrants?: boolean;
  opaque?: boolean;
  accessTokenTtl?: number;
  dpop?: "off" | "supported" | "required";
  dpopNonces?: boolean;
  change?: string;
}

/** Options of `sandbox vendors`. */
export interface VendorsOptions extends GlobalFlags, OutputFlags {}
