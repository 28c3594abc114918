import type { HostileCase } from "./case.js";
import { addresses } from "./cases/addresses.js";
import { assertions } from "./cases/assertions.js";
import { authorizeUrl } from "./cases/authorize-url.js";
import { broker } from "./cases/broker.js";
import { callback } from "./cases/callback.js";
import { clientDocument } from "./cases/client-document.js";
import { config } from "./cases/config.js";
import { discovery } from "./cases/discovery.js";
import { dpop } from "./cases/dpop.js";
import { exchange } from "./cases/exchange.js";
import { flood } from "./cases/flood.js";
import { handOver } from "./cases/hand-over.js";
import { hostSettings } from "./cases/host-settings.js";
import { issuerBinding } from "./cases/issuer-binding.js";
import { json } from "./cases/json.js";
import { lists } from "./cases/lists.js";
import { output } from "./cases/output.js";
import { refresh } from "./cases/refresh.js";
import { registration } from "./cases/registration.js";
import { resourceMetadata } from "./cases/resource-metadata.js";
import { road } from "./cases/road.js";
import { serverMetadata } from "./cases/server-metadata.js";
import { shortLink } from "./cases/short-link.js";
import { storage } from "./cases/storage.js";
import { supplyChain } from "./cases/supply-chain.js";
import { token } from "./cases/token.js";
import { twoStepLogin } from "./cases/two-step-login.js";
import { webLogin } from "./cases/web-login.js";

/** The tables, in the order of a login. */
export const tables: Readonly<Record<string, readonly HostileCase[]>> = {
  discovery,
  addresses,
  "resource metadata": resourceMetadata,
  "server metadata": serverMetadata,
  json,
  registration,
  "client document": clientDocument,
  "authorize url": authorizeUrl,
  callback: [...callback, ...shortLink, ...webLogin],
  flood,
  "login in two steps": twoStepLogin,
  "login that is handed over": handOver,
  token,
  refresh,
  exchange: [...exchange, ...assertions],
  road,
  "issuer binding": issuerBinding,
  "tokens that are bound to a key": dpop,
  storage,
  lists,
  output,
  config,
  "host settings": hostSettings,
  broker,
  "supply chain": supplyChain,
};

/** Every case of every table. */
export const allCases: readonly HostileCase[] = Object.values(tables).flat();
