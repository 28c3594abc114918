export { default as Conf } from "conf";
