import { hostSettings } from "./cases/host-settings.js";
import { hostile } from "./table.js";

hostile("host settings", hostSettings);
