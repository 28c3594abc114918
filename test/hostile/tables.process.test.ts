import { tables } from "./all.js";
import { hostileProcesses } from "./table.js";

for (const [name, cases] of Object.entries(tables)) hostileProcesses(name, cases);
