import { clientDocument } from "./cases/client-document.js";
import { hostile } from "./table.js";

hostile("client document", clientDocument);
