// What the build hands to the program, and to the packages in it, instead of the classes of Node.
export { HttpHeaders as Headers, HttpRequest as Request, HttpResponse as Response } from "../http/http-message.js";
