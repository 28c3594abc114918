export * from "../../helpers/peer.js";
