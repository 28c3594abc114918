import { supplyChain } from "./cases/supply-chain.js";
import { hostile } from "./table.js";

hostile("supply chain", supplyChain);
